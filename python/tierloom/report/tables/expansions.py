"""Tables of GPU memory expansion: configurations side by side, and copies that were measured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tierloom.columns import Column
from tierloom.forms import latency
from tierloom.published_claims import claims
from tierloom.report.table_layout.table import Table
from tierloom.report.tables.claims import published_text
from tierloom.units import percent_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tierloom.columns import Row
    from tierloom.gpu_measurement import Fit
    from tierloom.schema import ExpansionDoc

YARDSTICK = "gpu-dram"


def comparison(runs: Sequence[ExpansionDoc]) -> Table:
    """Runs of one workload, against the yardstick where it is one of them, else against the first."""
    setup, base = runs[-1]["setup"], yardstick(runs) or runs[0]
    return Table(
        [*SYSTEM, Column("against", f"against {base['setup']['config']}", "times"), *FIGURES],
        [_row(run, base["time_s"]) for run in runs],
        f"{runs[0]['workload']} on {setup['gpu']}, endpoint of {setup['media']}",
        "load: from a miss of the last-level cache to its answer; a page that faults is waited for before that.\n"
        "store: until the cache is rid of it. endpoint hits: reads whose line is in the endpoint's internal DRAM, and\n"
        "those whose line is there or on its way.",
    )


def yardstick(runs: Sequence[ExpansionDoc]) -> ExpansionDoc | None:
    """The run on a GPU that has memory enough."""
    return next((run for run in runs if run["setup"]["config"] == YARDSTICK), None)


SYSTEM = (Column("config", "configuration"), Column("time_s", "time", "seconds"))
FIGURES = (
    *(Column("load_mean_ns", "load mean", "ns"), Column("load_p99_ns", "load p99", "ns")),
    Column("store_p99_ns", "store p99", "ns"),
    *(Column("llc_hit_share", "cache hits", "percent"), Column("hit_share", "endpoint hits", "percent")),
    *(Column("hit_or_in_flight_share", "with in flight", "percent"), Column("collections", "collections", "count")),
    *(Column("faults", "faults", "count"), Column("moved_bytes", "paged", "bytes", "page")),
    *(Column("down_gb_s", "to the endpoints", "gb_s", "page"), Column("up_gb_s", "to the GPU", "gb_s", "page")),
)


def _row(run: ExpansionDoc, yardstick_s: float) -> Row:
    endpoint, paging, stores = run["endpoint"], run["paging"], run["write_backs"]
    reads, pages = endpoint["reads"] > 0, paging["batches"] > 0
    return {
        "config": run["setup"]["config"],
        **{key: run[key] for key in ("time_s", "llc_hit_share")},
        "against": run["time_s"] / yardstick_s,
        "load_mean_ns": run["loads"]["mean_ns"],
        "load_p99_ns": run["loads"]["p99_ns"],
        "store_p99_ns": stores["p99_ns"] if stores["count"] else None,
        **{key: endpoint[key] if reads else None for key in ("hit_share", "hit_or_in_flight_share", "collections")},
        **{key: paging[key] if pages else None for key in ("faults", "moved_bytes")},
        **{key: run["link"][key] for key in ("down_gb_s", "up_gb_s")},
    }


def calibration(found: Fit, measured: dict[str, Any]) -> Table:
    """Measured copies, and below them the fitted figures and what others published."""
    rows = [
        {"bytes": size, "in_ns": there, "in_gb_s": size / there, "out_ns": back, "out_gb_s": size / back}
        for (size, there), (_, back) in zip(measured["copies"], measured["copies_out"], strict=True)
    ]
    note = "\n".join(_fitted(found) + [f"published: {line}" for line in published_copies()])
    return Table(COPIES, rows, f"Copies between pinned host memory and {found.gpu}", note)


COPIES = (
    *(Column("bytes", "bytes", "bytes"), Column("in_ns", "to the GPU", "ns"), Column("in_gb_s", "GB/s", "hundredths")),
    *(Column("out_ns", "from it", "ns"), Column("out_gb_s", "GB/s", "hundredths")),
)


def _fitted(found: Fit) -> list[str]:
    """What the figures say, a line each."""
    said = [
        f"{name}: {line.ns:.0f} ns + bytes / {line.gb_s:.1f} GB/s, at worst {percent_text(line.worst_error)} off"
        for name, line in (("copies to the GPU", found.copies), ("from it", found.copies_out))
    ]
    said.append(
        f"a load of one thread: {latency(found.cache_load_ns)} from the L2, "
        f"{latency(found.device_load_ns)} from GPU memory, {latency(found.host_load_ns)} from the host's\n"
        f"all of the GPU reads {found.read_gb_s:.0f} GB/s of its memory"
    )
    if found.faults is None:
        return [*said, "managed memory: no page faults on this GPU, so the figures of UVM stay as they were published"]
    batch, block = latency(found.faults.host_ns), latency(found.faults.block_ns)
    return [
        *said,
        f"page faults: {batch} a batch, and {block} for each 2 MiB that it brings pages of, besides the copies",
    ]


def published_copies() -> list[str]:
    """What others measured of such copies: sentences of the ledger, with their figures."""
    return [f"{claim.what}: {published_text(claim)}" for claim in claims(["liu24.gpu.spread", "liu24.gpu.latency"])]
