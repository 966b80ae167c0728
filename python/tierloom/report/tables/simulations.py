"""Simulated runs as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tierloom.columns import Column
from tierloom.report.table_layout.table import Table
from tierloom.units import PAGE_BYTES, seconds_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tierloom.columns import Row
    from tierloom.migration_simulator import Simulation
    from tierloom.schema import OutcomeDoc


COUNTERS = (
    "numa_pte_updates",
    "numa_hint_faults",
    "numa_hint_faults_local",
    "numa_pages_migrated",
    "pgpromote_candidate",
    "pgpromote_success",
    "pgdemote_kswapd",
    "pgdemote_policy",
    "pgmigrate_fail",
)
"""Counters of migration, in the order of a page's way."""
FAULTS_AGAIN = (
    "more faults than entries that the scanner made fault, because TPP protects a page as it demotes it, which counts "
    "as no update, and leaves the entry of a page that is not active as it is, so one access faults up to 30 times "
    "(patches 1 and 5)"
)
SPREAD = (
    "Visits at random fall on all of an object, and one call may have allocated several arrays as one object: "
    "--samples follows the pages that samples fell on instead."
)
MOSTLY = 0.5
"""Share of a run that goes to moving pages from which on it is told how."""
SAME = 0.001
"""Faults and updates that differ by less are the same number of pages."""


def runs(simulations: Sequence[Simulation]) -> Table:
    """Every policy's time, what it went to, and what fast memory served; fastest first."""
    columns = [
        *(Column("policy", "policy"), Column("placement", "placement"), Column("time_s", "time", "seconds")),
        *(Column("against", "against the best", "times"), Column("compute_s", "computing", "percent")),
        *(Column("stall_s", "memory", "percent"), Column("fault_s", "faults", "percent")),
        *(Column("scan_s", "scans", "percent"), Column("copy_s", "copies", "percent")),
        *(Column("other_s", "other", "percent"), Column("fast_share", "from fast memory", "percent")),
    ]
    ordered = sorted((run.data for run in simulations), key=lambda run: run["time_s"])
    first = simulations[0]
    waits = f"; waiting: as in the run that was profiled on {first.ran_on}" if first.ran_on else ""
    return Table(
        columns,
        [_run_row(run, ordered[0]["time_s"]) for run in ordered],
        f"{first.workload} on {first.machine.name}",
        f"evaluator: {first.data['evaluator']}{waits}",
    )


def _run_row(run: OutcomeDoc, best_s: float) -> Row:
    parts = {**run["parts"], "other_s": run["parts"]["shootdown_s"] + run["parts"]["sample_s"]}
    return {
        **run,
        "against": run["time_s"] / best_s if best_s > 0 else None,
        **{name: _share(part, run["time_s"]) for name, part in parts.items() if isinstance(part, float)},
    }


def _share(part: float, whole: float) -> float | None:
    share = part / whole if whole > 0 else 0.0
    return share if share >= 0.0005 else None


def names(runs: Sequence[OutcomeDoc]) -> list[str]:
    """Policies, told apart by placement where one ran twice."""
    policies = [run["policy"] for run in runs]
    return [
        f"{run['policy']}, {run['placement']}" if policies.count(run["policy"]) > 1 else run["policy"] for run in runs
    ]


def counters(runs: Sequence[OutcomeDoc], *, has_samples: bool = False) -> Table:
    """What ``/proc/vmstat`` would show of each run, and how that comes to so much time.

    Args:
        runs: The runs.
        has_samples: Whether they are of a profile whose samples could be followed and were not.
    """
    named = dict(zip(names(runs), runs, strict=True))
    columns = [Column("counter", "counter", "code"), *(Column(f"in {name}", name, "count") for name in named)]
    rows = [
        {"counter": counter, **{f"in {name}": run["counters"].get(counter, 0.0) for name, run in named.items()}}
        for counter in COUNTERS
        if any(run["counters"].get(counter) for run in runs)
    ]
    again = [name for name, run in named.items() if _faults_again(run["counters"])]
    notes = [f"{', '.join(again)}: {FAULTS_AGAIN}."] if again else []
    promoting = (run for run in runs if run["counters"]["pgpromote_success"] >= 1)
    mostly_moving = [run for run in promoting if _moving_s(run) > MOSTLY * run["time_s"]]
    notes += [_cost_of_moving(run) for run in mostly_moving]
    if mostly_moving and has_samples:
        notes.append(SPREAD)
    return Table(columns, rows, "Counters as /proc/vmstat would show them", " ".join(notes))


def _moving_s(run: OutcomeDoc) -> float:
    """Time that hint faults and copies take, s."""
    return run["parts"]["fault_s"] + run["parts"]["copy_s"]


def _cost_of_moving(run: OutcomeDoc) -> str:
    """How the time of a run that moves pages more than it computes comes about."""
    counted, pages = run["counters"], sum(region["pages"] for region in run["regions"])
    promoted = counted["pgpromote_success"]
    faults, copies = counted["numa_hint_faults"] / promoted, counted["pgmigrate_success"] / promoted
    return (
        f"{run['policy']}: {promoted:,.0f} promotions at {faults:.0f} faults and {copies:.1f} copies each, "
        f"{seconds_text(_moving_s(run) / promoted)} together, take {seconds_text(_moving_s(run))}; a page is promoted "
        f"{promoted / max(1.0, pages):.1f} times on average."
    )


def _faults_again(counters: dict[str, float]) -> bool:
    return counters["numa_hint_faults"] > counters["numa_pte_updates"] * (1 + SAME)


NODES = (
    *(Column("memory", "memory"), Column("tier", "tier"), Column("held_bytes", "holds at the end", "bytes")),
    *(Column("capacity_bytes", "of", "bytes"), Column("bytes", "read and written", "gb")),
    Column("copied_bytes", "moved by migration", "gb"),
)


def nodes(outcome: OutcomeDoc) -> Table:
    """What each memory held and carried."""
    return Table(NODES, node_rows(outcome), f"What each memory did under {outcome['policy']}")


def node_rows(outcome: OutcomeDoc) -> list[Row]:
    """A row a memory."""
    return [
        {
            **node,
            "tier": f"{node['tier']}, {'top' if node['top'] else 'below'}",
            "held_bytes": node["used_pages"] * PAGE_BYTES,
            "capacity_bytes": node["pages"] * PAGE_BYTES,
        }
        for node in outcome["nodes"]
    ]
