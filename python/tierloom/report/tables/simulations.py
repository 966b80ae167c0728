"""Simulated runs as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tierloom.report.tables.layout import noted, table
from tierloom.units import PAGE_BYTES, bytes_text, percent_text, seconds_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tierloom.page_migration import Simulation
    from tierloom.report.tables.layout import Table
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
    made = table(
        f"{simulations[0].workload} on {simulations[0].machine.name}",
        ("policy", "left"),
        ("placement", "left"),
        ("time", "right"),
        ("against the best", "right"),
        ("computing", "right"),
        ("memory", "right"),
        ("faults", "right"),
        ("scans", "right"),
        ("copies", "right"),
        ("other", "right"),
        ("from fast memory", "right"),
    )
    best = min(run.time_s for run in simulations)
    for run in sorted(simulations, key=lambda run: run.time_s):
        parts = run.data["parts"]
        made.add_row(
            run.data["policy"],
            run.data["placement"],
            seconds_text(run.time_s),
            f"{run.time_s / best:.2f}x" if best > 0 else "",
            *(_share(part, run.time_s) for part in (parts["compute_s"], parts["stall_s"], parts["fault_s"])),
            *(_share(part, run.time_s) for part in (parts["scan_s"], parts["copy_s"])),
            _share(parts["shootdown_s"] + parts["sample_s"], run.time_s),
            percent_text(run.data["fast_share"]),
        )
    first = simulations[0]
    waits = f"; waiting: as in the run that was profiled on {first.ran_on}" if first.ran_on else ""
    return noted(made, f"evaluator: {first.data['evaluator']}{waits}")


def _share(part: float, whole: float) -> str:
    share = part / whole if whole > 0 else 0.0
    return percent_text(share) if share >= 0.0005 else "·"


def counters(simulations: Sequence[Simulation], *, has_samples: bool = False) -> Table:
    """What ``/proc/vmstat`` would show of each run, and how that comes to so much time.

    Args:
        simulations: The runs.
        has_samples: Whether they are of a profile whose samples could be followed and were not.
    """
    made = table("Counters", ("counter", "left"), *((run.data["policy"], "right") for run in simulations))
    for name in COUNTERS:
        values = [run.data["counters"][name] for run in simulations]
        if any(values):
            made.add_row(name, *(f"{value:,.0f}" for value in values))
    again = [run.data["policy"] for run in simulations if _faults_again(run.data["counters"])]
    notes = [f"{', '.join(again)}: {FAULTS_AGAIN}."] if again else []
    promoting = (run for run in simulations if run.data["counters"]["pgpromote_success"] >= 1)
    mostly_moving = [run.data for run in promoting if _moving_s(run.data) > MOSTLY * run.time_s]
    notes += [_cost_of_moving(run) for run in mostly_moving]
    if mostly_moving and has_samples:
        notes.append(SPREAD)
    return noted(made, " ".join(notes))


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


def nodes(outcome: OutcomeDoc) -> Table:
    """What each memory held and carried."""
    made = table(
        f"What each memory did under {outcome['policy']}",
        ("memory", "left"),
        ("tier", "left"),
        ("holds at the end", "right"),
        ("of", "right"),
        ("read and written", "right"),
        ("moved by migration", "right"),
    )
    for node in outcome["nodes"]:
        made.add_row(
            node["memory"],
            f"{node['tier']}, {'top' if node['top'] else 'below'}",
            bytes_text(node["used_pages"] * PAGE_BYTES),
            bytes_text(node["pages"] * PAGE_BYTES),
            f"{node['bytes'] / 1e9:.1f} GB",
            f"{node['copied_bytes'] / 1e9:.1f} GB",
        )
    return made


def costs(figures: dict[str, dict[str, object]]) -> Table:
    """What events cost, with where each number comes from."""
    made = table("What events cost", ("event", "left"), ("ns", "right"), ("kind", "left"), ("how", "left"))
    for name, figure in figures.items():
        made.add_row(name, f"{figure['value']:.0f}", str(figure["kind"]), str(figure.get("how", "")))
    return made
