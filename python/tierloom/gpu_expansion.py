"""A GPU whose memory is too small for its data, and the ways to give it more.

The faces call these; the engine is in ``crates/expander``. Every figure of the hardware comes from
one parameter set, ``catalog/expander/cxl-gpu.toml``, unless another file is named.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import tierloom._core as _core
from tierloom import arguments, catalog
from tierloom.errors import RequestError
from tierloom.readers import reading
from tierloom.units import amount_in_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tierloom.schema import ExpansionDoc

CONFIGS = ("gpu-dram", "uvm", "gds", "cxl", "cxl-naive", "cxl-dyn", "cxl-max", "cxl-sr", "cxl-ds")
"""From the yardstick to the most of what is published."""

WORKLOADS = (
    *("rsum", "stencil", "sort"),
    *("gemm", "vadd", "saxpy", "conv3", "path"),
    *("cfd", "gauss", "bfs"),
    *("gnn", "mri"),
)
"""The published thirteen: compute-, load-, store-intensive, and two real applications."""

TRACE_FIELDS = ("address", "thread", "store")
RECORD_BYTES = 16
TRACE_COMPUTE = 0.2
"""Share of instructions that do not touch memory, for traces, which hold only those that do."""


@dataclass(frozen=True)
class ParameterSet:
    """Every figure of the hardware, each with its origin: the text of the file, and what is in it."""

    text: str
    file: str

    @classmethod
    @arguments.reads(path=arguments.or_none(arguments.path))
    def load(cls, path: str | Path | None = None) -> ParameterSet:
        """Reads a parameter set; our own by default.

        Raises:
            RequestError: The file cannot be read.
        """
        if path is None:
            own = catalog.catalog_text("expander", "cxl-gpu.toml")
            return cls(own.content, own.file)
        with reading(path, "parameter set", "copy the set that `tierloom expand --write-set FILE` writes"):
            return cls(Path(path).read_text(encoding="utf-8"), str(path))

    @property
    def data(self) -> dict[str, Any]:
        """The file as a dictionary.

        Raises:
            RequestError: The text is not TOML.
        """
        with reading(self.file, "parameter set", "mend the text at the place named above"):
            return tomllib.loads(self.text)

    def group(self, workload: str) -> str:
        """The published group of a workload: compute, load, store or real; empty where it has none."""
        return str(self.data["workloads"].get(workload, {}).get("group", ""))


@arguments.reads(workload=arguments.text)
def expand(
    workload: str,
    *,
    config: str = "cxl",
    media: str = "dram",
    parameters: ParameterSet | None = None,
    **options: object,
) -> ExpansionDoc:
    """What a GPU gains from memory behind its own CXL ports: simulates one workload on one system.

    Args:
        workload: One of :data:`WORKLOADS`.
        config: One of :data:`CONFIGS`.
        media: ``dram``, or an SSD medium of the parameter set (``optane``, ``znand``, ``nand``).
        parameters: The hardware; our own set by default.
        options: What else the run varies: any of :data:`OPTIONS`, which say what they are.

    Returns:
        The document that ``tierloom expand --json`` prints: ``time_s``, ``accesses`` and ``stores`` as counts,
        ``loads`` and ``write_backs`` with latencies in ns (``mean_ns``, ``p50_ns``, ``p99_ns``), and what the
        endpoint and the paging did.

    Raises:
        RequestError: A name or a figure is wrong.

    Example:
        >>> local = expand("vadd", config="gpu-dram", passes=0.01)
        >>> cxl = expand("vadd", config="cxl", passes=0.01)
        >>> 1.1 < cxl["time_s"] / local["time_s"] < 1.6
        True
    """
    used = _hardware(parameters)
    answer = _core.expand(used.text, used.file, workload, _setup(config, media, options))
    return cast("ExpansionDoc", answer)


@arguments.reads(trace=arguments.path, compute=arguments.real(0.0, 1.0))
def expand_trace(
    trace: str | Path,
    *,
    config: str = "cxl",
    media: str = "dram",
    parameters: ParameterSet | None = None,
    compute: float = TRACE_COMPUTE,
    **options: object,
) -> ExpansionDoc:
    """Simulates a recorded trace.

    Args:
        trace: A file of 16-byte little-endian records (address of 8 bytes, thread of 4, and 4 that are
            1 for a store and 0 for a load), or an ``.npy`` file with the integer fields ``address``,
            ``thread`` and ``store``.
        config: As of :func:`expand`.
        media: As of :func:`expand`.
        parameters: As of :func:`expand`.
        compute: Share of instructions that do not touch memory.
        options: As of :func:`expand`.

    Raises:
        RequestError: The file holds no trace, or a name or a figure is wrong.
    """
    used = _hardware(parameters)
    records = trace_records(Path(trace))
    try:
        answer = _core.expand_trace(used.text, used.file, records, compute, _setup(config, media, options))
    except RequestError as problem:
        raise RequestError(str(problem).replace("trace: ", f"{trace}: ", 1)) from problem
    return cast("ExpansionDoc", answer)


def trace_records(path: Path) -> bytes:
    """The records of a trace file.

    Raises:
        RequestError: The file cannot be read or has other fields.
    """
    with reading(path, "trace", f"give 16-byte records, or an .npy file with {', '.join(TRACE_FIELDS)}"):
        records = _from_npy(path) if path.suffix == ".npy" else path.read_bytes()
    if not records or len(records) % RECORD_BYTES:
        message = (
            f"{path}: {len(records)} bytes are no whole number of records\nhint: give {RECORD_BYTES} bytes an access"
        )
        raise RequestError(message)
    return records


def _from_npy(path: Path) -> bytes:
    import numpy as np

    rows = np.lib.format.open_memmap(path, mode="r")
    missing = [field for field in TRACE_FIELDS if field not in (rows.dtype.names or ())]
    if missing:
        message = f"there is no field {', '.join(missing)}"
        raise ValueError(message)
    records = np.empty(len(rows), dtype=[("address", "<u8"), ("thread", "<u4"), ("store", "<u4")])
    for field in TRACE_FIELDS:
        records[field] = rows[field]
    return records.tobytes()


def _setup(config: str, media: str, options: Mapping[str, object]) -> dict[str, object]:
    read = {**{name: each.read for name, each in OPTIONS.items()}, "config": arguments.text, "media": arguments.text}
    given = {"config": config, "media": media, **{key: each for key, each in options.items() if each is not None}}
    for name in given:
        if name not in read:
            raise arguments.refused(name, "options", "no option of a run", f"use some of: {', '.join(OPTIONS)}")
    _known("config", config, CONFIGS)
    return {name: read[name](name, each) for name, each in given.items()}


def _hardware(given: ParameterSet | None) -> ParameterSet:
    """The parameter set that is meant; our own where none is."""
    hint = "give ParameterSet.load(path), of tierloom.gpu_expansion"
    arguments.instance(ParameterSet | None, hint)("parameters", given)
    return given or ParameterSet.load()


def _known(what: str, value: object, known: tuple[str, ...]) -> str:
    if not isinstance(value, str) or value not in known:
        raise arguments.refused(value, what, f"no {what}", f"use one of: {', '.join(known)}")
    return value


def _truth(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise arguments.refused(value, name, "no truth", "give True or False")
    return value


@dataclass(frozen=True)
class Option:
    """Something that a run may vary, for the function, the command line and studies.

    Attributes:
        read: What it may be; the engine knows more of how large.
        about: What it is, in a line.
        metavar: What stands for its value on the command line; empty where it is a switch.
        flag: Its name there, where that is another.
        kind: What is made of its text there, before it is read.
        words: The words that it may be, where it is one of few.
    """

    read: arguments.Reader
    about: str
    metavar: str = ""
    flag: str = ""
    kind: type[str | int | float] = str
    words: tuple[str, ...] = ()


def _real(about: str, metavar: str, flag: str = "") -> Option:
    return Option(arguments.real(), about, metavar, flag, float)


def _whole(about: str, least: int, most: int) -> Option:
    return Option(arguments.whole(least, most), about, "N", kind=int)


def _word(about: str, *words: str) -> Option:
    return Option(lambda name, value: _known(name, value, words), about, words=words)


OPTIONS = {
    "gpu": Option(arguments.text, "GPU of the parameter set: vortex-200mhz (default), h100.", "G"),
    "window": _word("How speculative reads are placed.", "steer", "literal"),
    "prefetch": _word("What the fault driver fetches along.", "none", "leaf", "tree"),
    "ports": _whole("Root ports, each with an endpoint: 1 to 64.", 1, 64),
    "controller_ns": _real("Round trip over the CXL controllers, without the memory.", "NS", "--controller"),
    "link_gb_s": _real("Bandwidth of the link in each direction.", "GB/S", "--link"),
    "local_ratio": _real("Data over local GPU memory; 10 by default.", "R"),
    "data_bytes": Option(lambda _, value: amount_in_bytes(value, 0), "The workload's data: 64MiB.", "SIZE", "--data"),
    "passes": _real("Line accesses over lines of data.", "P"),
    "tree_entries": _whole("Lines that the store buffer's SRAM can hold.", 0, 2**32 - 1),
    "seed": _whole("Seed of the workload's data.", 0, arguments.MOST_SEED),
    "carry": Option(_truth, "Carry the data along and check every load.", flag="--check"),
    "timeline_ns": _real("Step of the series over time.", "NS"),
}
"""What a run varies besides."""
