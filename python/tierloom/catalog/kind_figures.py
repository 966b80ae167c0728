"""Figures that are taken for granted where nobody tells: of near DRAM, of other kinds of memory, of a core.

Each says where it is from, and whoever uses one marks it `assumed`. Kinds without an entry are taken for DRAM.
"""

from __future__ import annotations

from dataclasses import dataclass

LOCAL_NS = 100.0
"""Near DRAM of servers of 2020 to 2025: 81 to 116 ns in published Intel MLC logs and Mess curves."""
LOCAL_GB_S = 38.4
"""One channel of DDR5-4800: 4800 million transfers of 8 bytes."""
LLC_BYTES = 32 << 20
"""One core complex of Zen 3 to 5; `machine measure` takes the same."""
DEMAND_LINES = 16.0
"""Fill buffers of Golden Cove, as in the catalog's Sapphire Rapids machines."""
STREAM_LINES = 27.4
"""One Sapphire Rapids thread that reads 18.1 GB/s at 97 ns, as in bytedance-spr-a1000."""
DRAM_WRITE_SHARE = 0.72
"""Write peak over read peak of a Xeon 8480+ with eight channels of DDR5-4800 (Mess-Results)."""
SHAPES = {
    "cxl": ({"knee": {"linear_ns": 11.6, "wait_ns": 0.08, "exponent": 1.49}}, "Micron's simulated CXL expander (Mess)")
}
DRAM_SHAPE = ({"knee": {"linear_ns": 19.5, "wait_ns": 16.0, "exponent": 1.4}}, "a Xeon 8480+ with DDR5-4800 (Mess)")
"""Rise of latency below the peak: fits of published read curves."""
SOCKET: dict[str, tuple[float, str]] = {
    "llc_bytes": (LLC_BYTES, "one core complex of Zen 3 to 5"),
    "llc_per_core_bytes": (LLC_BYTES, "one core complex of Zen 3 to 5"),
    "stream_lines": (STREAM_LINES, "as on Sapphire Rapids"),
    "demand_lines": (DEMAND_LINES, "as on Sapphire Rapids"),
}
"""Of a socket that nobody describes."""


@dataclass(frozen=True)
class KindFigures:
    """Of one device, with who published them."""

    idle_ns: float
    idle_of: str
    read_gb_s: float
    write_gb_s: float
    bandwidth_of: str


KIND_FIGURES = {
    "cxl": KindFigures(
        251.0,
        "an Astera A1000 card (EuroSys 2024)",
        27.1,
        23.4,
        "Micron's simulated CXL expander behind an x8 link (Mess)",
    ),
    "pmem": KindFigures(
        305.0,
        "random reads of Optane modules (arXiv 1903.05714)",
        6.6,
        2.3,
        "one Optane module (arXiv 1903.05714)",
    ),
}
"""Latency as `machine measure` has it, of random reads where the source tells them apart."""


def write_share(kind: str) -> float:
    """Write peak over read peak: that of the device of a kind, else that of DRAM."""
    known = KIND_FIGURES.get(kind)
    return known.write_gb_s / known.read_gb_s if known else DRAM_WRITE_SHARE
