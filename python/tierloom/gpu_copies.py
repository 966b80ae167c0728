"""Calibration of GPU memory expansion on a GPU at hand: measured copies and loads, fitted figures.

The kernels are in ``catalog/expander/copies.cu``. This has never run on a real GPU: the fit is tested
on made-up measurements with a known answer, the kernels are not tested at all.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tierloom.errors import MeasurementError

if TYPE_CHECKING:
    from collections.abc import Sequence

SOURCE = "catalog/expander/copies.cu"
LINK_FROM_BYTES = 1 << 20
"""Copies from this size on say what the link carries; smaller ones say what a copy costs at all."""


@dataclass(frozen=True)
class Fit:
    """Figures of the parameter set that measurements give."""

    gpu: str
    copy_gb_s: float
    copy_ns: float
    """A copy's fixed cost."""
    extra_load_ns: float
    """A load of host memory beyond one of GPU memory: the round trip of link and host."""
    worst_error: float
    """Largest relative error of the fitted copy time over the sizes that it was fitted to."""


def measure() -> dict[str, Any]:
    """Builds the kernels and runs them.

    Raises:
        MeasurementError: There is no compiler or no GPU, or the kernels fail.
    """
    nvcc = compiler()
    source = Path(str(resources.files("tierloom") / SOURCE))
    with tempfile.TemporaryDirectory() as folder:
        program = str(Path(folder) / "copies")
        _call([nvcc, "-O2", str(source), "-o", program])
        return dict(json.loads(_call([program])))


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
    """Fits copy time = cost + bytes / bandwidth by relative least squares, large copies alone for the slope.

    Args:
        measured: ``gpu``, ``copies`` (pairs of bytes and ns), ``host_load_ns``, ``device_load_ns``.

    Raises:
        MeasurementError: The measurements cannot be of copies and loads.

    Example:
        >>> copies = [[1 << k, 2000 + (1 << k) / 25] for k in range(7, 32)]
        >>> found = fit({"gpu": "made up", "copies": copies, "host_load_ns": 900, "device_load_ns": 500})
        >>> round(found.copy_gb_s, 3), round(found.copy_ns), found.extra_load_ns
        (25.0, 2000, 400.0)
    """
    copies = [(float(size), float(ns)) for size, ns in measured["copies"]]
    large = [pair for pair in copies if pair[0] >= LINK_FROM_BYTES]
    if len(large) < 2 or any(ns <= 0 for _, ns in copies):
        message = "there are too few copies of 1 MiB and more, or some took no time\nhint: measure again"
        raise MeasurementError(message)
    cost, per_byte = relative_line(large)
    small = [ns - size * per_byte for size, ns in copies if size < LINK_FROM_BYTES]
    cost = sorted(small)[len(small) // 2] if small else cost
    extra = float(measured["host_load_ns"]) - float(measured["device_load_ns"])
    if per_byte <= 0 or extra <= 0:
        message = "host memory is not slower than GPU memory in these measurements\nhint: measure on an idle GPU"
        raise MeasurementError(message)
    worst = max(abs((cost + size * per_byte) / ns - 1) for size, ns in copies)
    return Fit(str(measured["gpu"]), 1 / per_byte, cost, extra, worst)


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


def into_set(text: str, found: Fit) -> str:
    """A parameter set with the fitted figures in it, marked as measured.

    The bandwidth of copies belongs to the fault driver, the round trip to the link.
    """
    text = _replace(text, "copy_gb_s", found.copy_gb_s, f"pinned copies on {found.gpu}")
    note = f"loads of pinned host memory less loads of GPU memory on {found.gpu}"
    return _replace(text, "round_trip_ns", found.extra_load_ns, note)


def _replace(text: str, key: str, value: float, how: str) -> str:
    figure = f'{key} = {{ value = {value:.1f}, kind = "measured", source = "model", how = "{how}" }}'
    return re.sub(rf"^{key} = .*$", lambda _: figure, text, count=1, flags=re.MULTILINE)
