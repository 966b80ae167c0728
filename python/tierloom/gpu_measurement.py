"""Calibration of GPU memory expansion on a GPU at hand: copies, loads and page faults, fitted figures.

The kernels are in ``catalog/expander/gpu.cu``; what they measured of an H200 and an H100 is kept beside them.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
import tomllib
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tierloom.errors import MeasurementError
from tierloom.toml_values import toml_value
from tierloom.units import LINE_BYTES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SOURCE = "catalog/expander/gpu.cu"
KEPT = {name: f"catalog/expander/{name}.json" for name in ("h200", "h100")}
"""Measurements that come with us, by name."""
MEASURED = ("gpu", "cores", "clock_ghz", "copies", "copies_out", "read_gb_s")
LOADS = ("host_load_ns", "device_load_ns", "cache_load_ns")
BLOCK_BYTES = 2 << 20
"""What NVIDIA's driver of unified memory serves as one."""
LEAF_BYTES = 64 << 10
"""What it brings at least."""
CHANNEL_BYTES = 8
"""What a channel of DRAM carries in a transfer."""
LINK_FROM_BYTES = 1 << 20
"""Copies from this size on say what the link carries; smaller ones say what a copy costs at all."""


@dataclass(frozen=True)
class Line:
    """What copies of one direction cost: a fixed time, and what a byte adds."""

    ns: float
    gb_s: float
    worst_error: float
    """Largest relative error over all sizes."""


@dataclass(frozen=True)
class Faults:
    """What the host's runtime takes for page faults of unified memory, without the copies."""

    host_ns: float
    """For a batch."""
    block_ns: float
    """For each block of 2 MiB that the batch brings pages of."""


@dataclass(frozen=True)
class Fit:
    """Figures of the parameter set that measurements give."""

    gpu: str
    copies: Line
    """From pinned host memory to the GPU."""
    copies_out: Line
    """Back."""
    host_load_ns: float
    """A load of pinned host memory by one thread, which waits for it."""
    device_load_ns: float
    cache_load_ns: float
    read_gb_s: float
    """All of the GPU reading its own memory."""
    cores: int
    clock_ghz: float
    faults: Faults | None
    """None where the GPU takes no page faults of managed memory."""


def measure() -> dict[str, Any]:
    """Builds the kernels and runs them.

    Raises:
        MeasurementError: There is no compiler or no GPU, or the kernels fail.
    """
    nvcc = compiler()
    source = Path(str(resources.files("tierloom") / SOURCE))
    with tempfile.TemporaryDirectory() as folder:
        program = str(Path(folder) / "gpu")
        _call([nvcc, "-O2", "-std=c++17", str(source), "-o", program])
        return dict(json.loads(_call([program])))


def kept(name: str) -> dict[str, Any]:
    """Measurements that come with us.

    Example:
        >>> kept("h200")["gpu"]
        'NVIDIA H200'
    """
    return dict(json.loads((resources.files("tierloom") / KEPT[name]).read_text(encoding="utf-8")))


def compiler() -> str:
    """Path of the compiler, on a machine that has the driver, too.

    Raises:
        MeasurementError: There is no compiler or no driver.
    """
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        message = "there is no nvcc on this machine, so nothing can be measured\nhint: install the CUDA toolkit"
        raise MeasurementError(message)
    if shutil.which("nvidia-smi") is None:
        message = "there is no NVIDIA driver on this machine\nhint: run this where the GPU is"
        raise MeasurementError(message)
    return nvcc


def _call(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        message = f"{command[0]}: {done.stderr.strip()}\nhint: try it by hand: {' '.join(command)}"
        raise MeasurementError(message)
    return done.stdout


def fit(measured: dict[str, Any]) -> Fit:
    """The figures that measurements give.

    Args:
        measured: What the kernels print: ``copies`` and ``copies_out`` (pairs of bytes and ns), loads in ns,
            ``read_gb_s``, and ``faults`` (``touches``, ``stride`` in bytes, ``count`` and ``ns``).

    Raises:
        MeasurementError: The measurements cannot be of copies, loads and faults.

    Example:
        >>> found = fit(kept("h200"))
        >>> round(found.copies.gb_s, 1), round(found.copies.ns), round(found.device_load_ns)
        (55.5, 2638, 334)
    """
    host, device = float(measured["host_load_ns"]), float(measured["device_load_ns"])
    if host <= device:
        message = "host memory is not slower than GPU memory in these measurements\nhint: measure on an idle GPU"
        raise MeasurementError(message)
    copies = copy_line(measured["copies"])
    return Fit(
        gpu=str(measured["gpu"]),
        copies=copies,
        copies_out=copy_line(measured["copies_out"]),
        host_load_ns=host,
        device_load_ns=device,
        cache_load_ns=float(measured["cache_load_ns"]),
        read_gb_s=float(measured["read_gb_s"]),
        cores=int(measured["cores"]),
        clock_ghz=float(measured["clock_ghz"]),
        faults=fault_times(measured["faults"], copies) if measured.get("faults") else None,
    )


def copy_line(pairs: Sequence[Sequence[float]]) -> Line:
    """Copy time = cost + bytes / bandwidth by relative least squares, large copies alone for the slope.

    Raises:
        MeasurementError: There are too few copies, or they do not take longer where they are larger.

    Example:
        >>> line = copy_line([(1 << k, 2000 + (1 << k) / 25) for k in range(7, 32)])
        >>> round(line.gb_s, 3), round(line.ns)
        (25.0, 2000)
    """
    copies = [(float(size), float(ns)) for size, ns in pairs]
    large = [pair for pair in copies if pair[0] >= LINK_FROM_BYTES]
    if len(large) < 2 or any(ns <= 0 for _, ns in copies):
        message = "there are too few copies of 1 MiB and more, or some took no time\nhint: measure again"
        raise MeasurementError(message)
    cost, per_byte = relative_line(large)
    if per_byte <= 0:
        message = "larger copies take no longer in these measurements\nhint: measure on an idle GPU"
        raise MeasurementError(message)
    small = [ns - size * per_byte for size, ns in copies if size < LINK_FROM_BYTES]
    cost = sorted(small)[len(small) // 2] if small else cost
    return Line(cost, 1 / per_byte, max(abs((cost + size * per_byte) / ns - 1) for size, ns in copies))


def fault_times(faults: Sequence[dict[str, Any]], copies: Line) -> Faults:
    """What a batch and a block of it take: from touches of blocks one after another, and from most of them at once.

    A touch of its own is a batch of one block. Of many at once, batches are so full that only blocks count. Each
    brings a leaf.

    Raises:
        MeasurementError: There are no such touches, or many at once are not served faster.

    Example:
        >>> alone = {"touches": "one after another", "stride": 2 << 20, "count": 10, "ns": 320_000}
        >>> fault_times([alone, {**alone, "touches": "all at once", "ns": 180_000}], Line(0, 65.536, 0))
        Faults(host_ns=14000.0, block_ns=17000.0)
    """

    def of_block(how: str) -> float:
        found = [each for each in faults if each["touches"] == how and each["stride"] == BLOCK_BYTES]
        if not found:
            message = f"there are no touches of blocks of 2 MiB, {how}\nhint: measure again"
            raise MeasurementError(message)
        most = max(found, key=lambda each: each["count"])
        return float(most["ns"] / most["count"]) - LEAF_BYTES / copies.gb_s

    alone, together = of_block("one after another"), of_block("all at once")
    if not 0 < together < alone:
        message = "faults that come together take no less than faults alone\nhint: measure on an idle machine"
        raise MeasurementError(message)
    return Faults(alone - together, together)


def relative_line(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Intercept and slope that make the relative errors of a line through points least.

    Example:
        >>> intercept, slope = relative_line([(0.0, 1.0), (1.0, 3.0), (2.0, 5.0)])
        >>> round(intercept, 9), round(slope, 9)
        (1.0, 2.0)
    """
    weights = [1 / y**2 for _, y in points]
    total = sum(weights)
    mean_x = sum(w * x for w, (x, _) in zip(weights, points, strict=True)) / total
    mean_y = sum(w * y for w, (_, y) in zip(weights, points, strict=True)) / total
    spread = sum(w * (x - mean_x) ** 2 for w, (x, _) in zip(weights, points, strict=True))
    slope = sum(w * (x - mean_x) * (y - mean_y) for w, (x, y) in zip(weights, points, strict=True)) / spread
    return mean_y - slope * mean_x, slope


@dataclass(frozen=True)
class Figure:
    """A figure of a set that measurements give: as it was measured, or derived from what was."""

    value: float
    how: str
    kind: Literal["measured", "derived"] = "measured"


def into_set(text: str, found: Fit) -> str:
    """A parameter set with the GPU at hand in it, as ``gpus.here``, and its driver of unified memory.

    What the kernels do not measure of it stays as assumed of an H100. The CXL link is none of it: no GPU has one yet.
    """
    origin = f"here = {toml_value('the kernels of tierloom expand calibrate on ' + found.gpu)}\n"
    text = text.replace("[sources]\n", "[sources]\n" + origin, 1)
    driver = {"copy_gb_s": Figure(found.copies.gb_s, "pinned copies of 1 MiB and more")}
    if found.faults:
        alone = "a block of 2 MiB touched alone, less one of many"
        driver["host_ns"] = Figure(found.faults.host_ns, alone, "derived")
        together = "blocks of 2 MiB touched all at once, less their copies"
        driver["block_ns"] = Figure(found.faults.block_ns, together, "derived")
    text = _replaced(text, "uvm", driver)
    here = _section(text, "gpus.h100").replace("[gpus.h100]", "[gpus.here]", 1)
    here = _replaced(here, "gpus.here", _gpu(found, tomllib.loads(text)["dram"]))
    title = f"title = {toml_value(found.gpu + ', measured')}"
    here = re.sub(r"^title = .*$", lambda _: title, here, count=1, flags=re.MULTILINE)
    return text.rstrip("\n") + "\n\n" + here


def _gpu(found: Fit, dram: Mapping[str, Any]) -> dict[str, Figure]:
    """Figures of the GPU, whose memory is so many channels of the set's DRAM behind a controller."""
    clock_ghz = dram["mt_s"]["value"] / 2000.0
    row_miss_ns = sum(dram[part]["value"] for part in ("rcd", "cl", "burst")) / clock_ghz
    channel_gb_s = dram["mt_s"]["value"] * CHANNEL_BYTES / 1000.0
    lines = found.read_gb_s * found.device_load_ns / LINE_BYTES / found.cores
    behind_ns = max(found.device_load_ns - found.cache_load_ns - row_miss_ns, 0.0)
    return {
        "cores": Figure(found.cores, "as its driver says"),
        "clock_ghz": Figure(found.clock_ghz, "as its driver says"),
        "core_loads": Figure(round(lines), "reads by all cores: bandwidth times latency of one load", "derived"),
        "llc_ns": Figure(found.cache_load_ns, "loads of one thread that stay in the L2"),
        "channels": Figure(round(found.read_gb_s / channel_gb_s), f"all read {found.read_gb_s:.0f} GB/s", "derived"),
        "controller_ns": Figure(behind_ns, "loads of one thread, less the L2 and a row miss", "derived"),
    }


def _section(text: str, name: str) -> str:
    """The lines of one table of a set, its head with them."""
    begin = text.index(f"[{name}]\n")
    end = text.find("\n[", begin)
    return text[begin : end + 1 if end >= 0 else len(text)]


def _replaced(text: str, section: str, figures: Mapping[str, Figure]) -> str:
    """The text with other figures in one of its tables."""

    def line(found: re.Match[str]) -> str:
        figure = figures.get(found[1])
        return found[0] if figure is None else f"{found[1]} = {_origin(figure)}"

    old = _section(text, section)
    return text.replace(old, re.sub(r"^(\w+) = .*$", line, old, flags=re.MULTILINE), 1)


def _origin(figure: Figure) -> str:
    shown = str(figure.value) if isinstance(figure.value, int) else f"{figure.value:.3f}"
    return f'{{ value = {shown}, kind = "{figure.kind}", source = "here", how = {toml_value(figure.how)} }}'
