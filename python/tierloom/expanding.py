"""A GPU whose memory is too small for its data, and the ways to give it more.

The faces call these; the engine is in ``crates/expander``. Every figure of the hardware comes from
one parameter set, ``catalog/expander/cxl-gpu.toml``, unless another file is named.
"""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import tierloom._core as _core
from tierloom import lookup
from tierloom.errors import RequestError
from tierloom.reading import reading

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
    def load(cls, path: str | Path | None = None) -> ParameterSet:
        """Reads a parameter set; our own by default.

        Raises:
            RequestError: The file cannot be read.
        """
        if path is None:
            own = lookup.catalog_text("expander", "cxl-gpu.toml")
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


def expand(
    workload: str,
    *,
    config: str = "cxl",
    media: str = "dram",
    parameters: ParameterSet | None = None,
    **options: object,
) -> ExpansionDoc:
    """Simulates one workload on one system.

    Args:
        workload: One of :data:`WORKLOADS`.
        config: One of :data:`CONFIGS`.
        media: ``dram``, or an SSD medium of the parameter set (``optane``, ``znand``, ``nand``).
        parameters: The hardware; our own set by default.
        options: What else the run varies: ``gpu``, ``window`` (``steer``, ``literal``), ``prefetch``
            (``none``, ``leaf``, ``tree``), ``ports``, ``controller_ns``, ``link_gb_s``,
            ``local_ratio``, ``data_bytes``, ``passes``, ``tree_entries``, ``seed``, ``carry`` (data is
            carried along and every load checked), ``timeline_ns``.

    Raises:
        RequestError: A name or a figure is wrong.

    Example:
        >>> local = expand("vadd", config="gpu-dram", passes=0.01)
        >>> cxl = expand("vadd", config="cxl", passes=0.01)
        >>> 1.1 < cxl["time_s"] / local["time_s"] < 1.6
        True
    """
    used = parameters or ParameterSet.load()
    answer = _core.expand(used.text, used.file, workload, _setup(config, media, options))
    return cast("ExpansionDoc", json.loads(answer))


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
    used = parameters or ParameterSet.load()
    records = trace_records(Path(trace))
    try:
        answer = _core.expand_trace(used.text, used.file, records, compute, _setup(config, media, options))
    except RequestError as problem:
        raise RequestError(str(problem).replace("trace: ", f"{trace}: ", 1)) from problem
    return cast("ExpansionDoc", json.loads(answer))


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


def _setup(config: str, media: str, options: Mapping[str, object]) -> str:
    chosen = {key: value for key, value in options.items() if value is not None}
    return json.dumps({"config": config, "media": media, **chosen})
