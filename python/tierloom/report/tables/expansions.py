"""Tables of GPU memory expansion: configurations side by side, and copies that were measured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tierloom.published_claims import claims
from tierloom.report.tables.claims import published_text
from tierloom.report.tables.layout import noted, table
from tierloom.units import bytes_text, percent_text, seconds_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tierloom.gpu_measurement import Fit
    from tierloom.report.tables.layout import Table
    from tierloom.schema import ExpansionDoc

YARDSTICK = "gpu-dram"


def comparison(runs: Sequence[ExpansionDoc]) -> Table:
    """Runs of one workload, the yardstick first."""
    setup = runs[-1]["setup"]
    made = table(
        f"{runs[0]['workload']} on {setup['gpu']}, endpoint of {setup['media']}",
        ("configuration", "left"),
        ("time", "right"),
        (f"against {YARDSTICK}", "right"),
        ("load mean", "right"),
        ("load p99", "right"),
        ("store p99", "right"),
        ("cache hits", "right"),
        ("endpoint hits", "right"),
        ("with in flight", "right"),
        ("collections", "right"),
        ("faults", "right"),
    )
    for run in runs:
        made.add_row(*_cells(run, runs[0]["time_s"]))
    return noted(
        made,
        "load: from a miss of the last-level cache to its answer; a page that faults is waited for before that.\n"
        "store: until the cache is rid of it. endpoint hits: reads whose line is in the endpoint's internal DRAM, and\n"
        "those whose line is there or on its way.",
    )


def _cells(run: ExpansionDoc, yardstick_s: float) -> list[str]:
    endpoint, paging = run["endpoint"], run["paging"]
    hits = endpoint["reads"] > 0
    return [
        run["setup"]["config"],
        seconds_text(run["time_s"]),
        f"{run['time_s'] / yardstick_s:.2f}x",
        nanoseconds(run["loads"]["mean_ns"]),
        nanoseconds(run["loads"]["p99_ns"]),
        nanoseconds(run["write_backs"]["p99_ns"]) if run["write_backs"]["count"] else "-",
        percent_text(run["llc_hit_share"]),
        percent_text(endpoint["hit_share"]) if hits else "-",
        percent_text(endpoint["hit_or_in_flight_share"]) if hits else "-",
        str(endpoint["collections"]) if hits else "-",
        str(paging["faults"]) if paging["batches"] else "-",
    ]


def calibration(found: Fit, measured: dict[str, Any]) -> Table:
    """Measured copies, and below them the fitted figures and what others published."""
    made = table(
        f"Copies between pinned host memory and {found.gpu}",
        ("bytes", "right"),
        ("to the GPU", "right"),
        ("GB/s", "right"),
        ("from it", "right"),
        ("GB/s", "right"),
    )
    for (size, there), (_, back) in zip(measured["copies"], measured["copies_out"], strict=True):
        made.add_row(
            bytes_text(size), nanoseconds(there), f"{size / there:.2f}", nanoseconds(back), f"{size / back:.2f}"
        )
    return noted(made, "\n".join(_fitted(found) + [f"published: {line}" for line in published_copies()]))


def _fitted(found: Fit) -> list[str]:
    """What the figures say, a line each."""
    said = [
        f"{name}: {line.ns:.0f} ns + bytes / {line.gb_s:.1f} GB/s, at worst {percent_text(line.worst_error)} off"
        for name, line in (("copies to the GPU", found.copies), ("from it", found.copies_out))
    ]
    said.append(
        f"a load of one thread: {nanoseconds(found.cache_load_ns)} from the L2, "
        f"{nanoseconds(found.device_load_ns)} from GPU memory, {nanoseconds(found.host_load_ns)} from the host's\n"
        f"all of the GPU reads {found.read_gb_s:.0f} GB/s of its memory"
    )
    if found.faults is None:
        return [*said, "managed memory: no page faults on this GPU, so the figures of UVM stay as they were published"]
    batch, block = nanoseconds(found.faults.host_ns), nanoseconds(found.faults.block_ns)
    return [
        *said,
        f"page faults: {batch} a batch, and {block} for each 2 MiB that it brings pages of, besides the copies",
    ]


def published_copies() -> list[str]:
    """What others measured of such copies: sentences of the ledger, with their figures."""
    return [f"{claim.what}: {published_text(claim)}" for claim in claims(["liu24.gpu.spread", "liu24.gpu.latency"])]


def nanoseconds(value: float) -> str:
    """A latency: ns below a microsecond, µs above."""
    return f"{value:.0f} ns" if value < 1000 else seconds_text(value * 1e-9)
