"""A GPU whose memory is too small for its data, and the ways to give it more.

The faces call these; the engine is in ``crates/expander``. Every figure of the hardware comes from
one parameter set, ``catalog/expander/cxl-gpu.toml``, unless another file is named.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

import tierloom._core as _core
from tierloom import arguments, catalog
from tierloom.errors import RequestError
from tierloom.readers import reading
from tierloom.units import amount_in_bytes

if TYPE_CHECKING:
    from tierloom.schema import ExpansionDoc
    from tierloom.units import Amount

CONFIGS = ("gpu-dram", "uvm", "gds", "cxl", "cxl-naive", "cxl-dyn", "cxl-max", "cxl-sr", "cxl-ds")
"""From the yardstick to the most of what is published."""

GROUPS = {
    "compute": ("rsum", "stencil", "sort"),
    "load": ("gemm", "vadd", "saxpy", "conv3", "path"),
    "store": ("cfd", "gauss", "bfs"),
    "real": ("gnn", "mri"),
}
"""The published thirteen: compute-, load-, store-intensive, and two real applications."""

WORKLOADS = tuple(name for group in GROUPS.values() for name in group)

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


Window = Literal["steer", "literal"]
Prefetch = Literal["none", "leaf", "tree"]

VARIED: dict[str, arguments.Reader] = {
    "config": arguments.one_of(CONFIGS),
    **dict.fromkeys(("media", "gpu"), arguments.text),
    "window": arguments.one_of(get_args(Window)),
    "prefetch": arguments.one_of(get_args(Prefetch)),
    "ports": arguments.whole(1, 64),
    **dict.fromkeys(("controller_ns", "link_gb_s", "local_ratio", "passes", "timeline_ns"), arguments.real()),
    "data_bytes": lambda _, value: amount_in_bytes(value, 0),
    "tree_entries": arguments.whole(0, 2**32 - 1),
    "seed": arguments.whole(0, arguments.MOST_SEED),
    "carry": arguments.truth,
}
"""What a run may vary, and how each is read; the engine knows more of how large."""


@arguments.reads(
    workload=arguments.or_none(arguments.text),
    trace=arguments.or_none(arguments.path),
    compute=arguments.real(0.0, 1.0),
    **VARIED,
)
def expand(
    workload: str | None = None,
    *,
    trace: str | Path | None = None,
    compute: float = TRACE_COMPUTE,
    config: str = "cxl",
    media: str = "dram",
    parameters: ParameterSet | None = None,
    gpu: str | None = None,
    window: Window | None = None,
    prefetch: Prefetch | None = None,
    ports: int | None = None,
    controller_ns: float | None = None,
    link_gb_s: float | None = None,
    local_ratio: float | None = None,
    data_bytes: Amount | None = None,
    passes: float | None = None,
    tree_entries: int | None = None,
    seed: int | None = None,
    carry: bool = False,
    timeline_ns: float | None = None,
) -> ExpansionDoc:
    """What a GPU gains from memory behind its own CXL ports: simulates a workload, or a trace, on one system.

    What is left out is as the parameter set has it.

    Args:
        workload: One of :data:`WORKLOADS`.
        trace: Trace instead of a workload: 16-byte records, or .npy.

            Records are little-endian: an address of 8 bytes, a thread of 4, and 4 that are 1 for a store and 0 for a
            load. An ``.npy`` file has them as the integer fields ``address``, ``thread`` and ``store``.
        compute: Share of a trace's instructions that do not touch memory.
        config: One of :data:`CONFIGS`.
        media: Memory at the endpoint: dram, optane, znand, nand, or another SSD medium of the parameter set.
        parameters: The hardware; our own set by default.
        gpu: GPU of the parameter set: vortex-200mhz (default), h100.
        window: How speculative reads are placed.
        prefetch: What the fault driver fetches along.
        ports: Root ports, each with an endpoint: 1 to 64.
        controller_ns: Round trip over the CXL controllers, without the memory.
        link_gb_s: Bandwidth of the link in each direction.
        local_ratio: Data over local GPU memory; 10 by default.
        data_bytes: The workload's data: ``"64MiB"``.
        passes: Line accesses over lines of data.
        tree_entries: Lines that the store buffer's SRAM can hold.
        seed: Seed of the workload's data.
        carry: Carry the data along and check every load.
        timeline_ns: Step of the series over time.

    Returns:
        The answer as a document: ``time_s``, ``accesses`` and ``stores`` as counts,
        ``loads`` and ``write_backs`` with latencies in ns (``mean_ns``, ``p50_ns``, ``p99_ns``), and what the
        endpoint and the paging did.

    Raises:
        RequestError: A name or a figure is wrong, the file holds no trace, or there is not one of workload and trace.

    Example:
        >>> local = expand("vadd", config="gpu-dram", passes=0.01)
        >>> cxl = expand("vadd", config="cxl", passes=0.01)
        >>> 1.1 < cxl["time_s"] / local["time_s"] < 1.6
        True
    """
    setup = {name: given for name, given in locals().items() if name in VARIED and given is not None}
    used = _hardware(parameters)
    if workload is not None and trace is None:
        answer = _core.expand(used.text, used.file, workload, setup)
    elif trace is not None and workload is None:
        answer = _replay(used, trace, compute, setup)
    else:
        found = "neither is" if trace is None else "both are"
        message = f"one of workload and trace has to be given, and {found}\nhint: give a workload, or a trace's file"
        raise RequestError(message)
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


def _replay(used: ParameterSet, trace: str | Path, compute: float, setup: dict[str, object]) -> dict[str, Any]:
    """Simulates a recorded trace.

    Raises:
        RequestError: The file holds no trace, or a figure is wrong.
    """
    records = trace_records(Path(trace))
    try:
        return _core.expand_trace(used.text, used.file, records, compute, setup)
    except RequestError as problem:
        raise RequestError(str(problem).replace("trace: ", f"{trace}: ", 1)) from problem


def _hardware(given: ParameterSet | None) -> ParameterSet:
    """The parameter set that is meant; our own where none is."""
    hint = "give ParameterSet.load(path), of tierloom.gpu_expansion"
    arguments.instance(ParameterSet | None, hint)("parameters", given)
    return given or ParameterSet.load()
