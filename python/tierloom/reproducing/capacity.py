"""Jobs that spill, key-value stores, shuffles and costs: the published cases of the catalog.

A case holds what went in and what came out, and `tierloom.capacity` what follows from the one without the
other: a speed-up is predicted from the other points of its table, never from itself.
"""

from __future__ import annotations

from tierloom.capacity import published
from tierloom.reproducing.computing import Runs, computes, task


@task(weight=0.5)
def found(*, case: str) -> dict[str, float]:
    """Everything that a case's inputs say, by the name of the finding."""
    return {each.name: each.ours for each in published.findings(case)}


@computes
def finding(runs: Runs, *, case: str, name: str) -> float:
    """One finding of a case."""
    return float(runs(found(case=case))[0][name])


@computes
def faster(runs: Runs, *, case: str, name: str) -> bool:
    """Whether the configuration that is named first is the faster one."""
    return bool(runs(found(case=case))[0][name] > 1.0)


@computes
def near(runs: Runs, *, case: str, name: str, within: float) -> bool:
    """Whether the configuration that is named first is ahead by no more than a share."""
    return bool(runs(found(case=case))[0][name] <= 1.0 + within)
