"""Figures of firmware that no memory has: told, and left out, so that what fills in for them is marked as such.

HMAT and CDAT tables are filled in by hand and seldom read: placeholders and wrong units happen, in kernels
as well (Linux 6.12 adds a CXL link's latency in picoseconds to nanoseconds). A plan that believes in a
memory of 17 µs keeps everything away from it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tierloom.machine_formats.sketch import Sketch
    from tierloom.schema import WarningDoc

IDLE_NS = (12.5, 5_000.0)
"""From the first data of an open DRAM row (tAA of JESD79-4, the shortest of its speed bins) to ten times the
slowest memory with a published idle latency under loads and stores (FPGA CXL expander, about 0.5 µs): assumed."""
GB_S = (0.25, 20_000.0)
"""From one lane of first-generation PCIe to four times the HBM3 of an MI300X (5.3 TB/s, AMD's data sheet): assumed."""
BOUNDS = {
    "idle_ns": ("an idle latency", "ns", IDLE_NS),
    "read_gb_s": ("a read bandwidth", "GB/s", GB_S),
    "write_gb_s": ("a write bandwidth", "GB/s", GB_S),
}


def leave_out_implausible(sketch: Sketch) -> None:
    """Takes such figures out of all routes and adds a warning for each."""
    for (start, end), route in sorted(sketch.routes.items()):
        for key, (what, unit, (least, most)) in BOUNDS.items():
            figure = getattr(route, key)
            if figure is not None and not least <= figure.value <= most:
                setattr(route, key, None)
                sketch.warnings.append(_told(f"{what} of {figure.value:g} {unit} from node {start} to node {end}"))


def _told(figure: str) -> WarningDoc:
    return {
        "what": f"firmware and kernel tell {figure}, which no memory has; it is left out",
        "cause": "a placeholder or a wrong unit in HMAT or CDAT, or in the kernel that adds them up: Linux 6.12 "
        "takes a CXL link's picoseconds for nanoseconds",
        "remedy": "measure it (tierloom machine measure), or write what you know into the machine file; "
        "what stands there now is marked assumed or derived",
    }
