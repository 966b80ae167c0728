"""Tables of GPU memory expansion: configurations side by side, and copies that were measured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tierloom.published_claims import claims
from tierloom.report.tables.layout import noted, table
from tierloom.units import bytes_text, percent_text, seconds_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tierloom.gpu_copies import Fit
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
    """Measured copies beside the fitted line, and what others published."""
    made = table(
        f"Copies from pinned host memory on {found.gpu}", ("bytes", "right"), ("time", "right"), ("GB/s", "right")
    )
    for size, ns in measured["copies"]:
        made.add_row(bytes_text(size), nanoseconds(ns), f"{size / ns:.2f}")
    return noted(
        made,
        f"fit: {found.copy_ns:.0f} ns + bytes / {found.copy_gb_s:.1f} GB/s, "
        f"at worst {percent_text(found.worst_error)} off; "
        f"a load of host memory costs {found.extra_load_ns:.0f} ns more than one of GPU memory\n"
        + "\n".join(f"published: {line}" for line in published_copies()),
    )


def published_copies() -> list[str]:
    """What others measured of such copies: sentences of the ledger."""
    return [claim.what for claim in claims(["liu24.gpu.spread", "liu24.gpu.latency"])]


def nanoseconds(value: float) -> str:
    """A latency: ns below a microsecond, µs above."""
    return f"{value:.0f} ns" if value < 1000 else seconds_text(value * 1e-9)
