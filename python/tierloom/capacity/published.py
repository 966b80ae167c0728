"""Every published case beside ours, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tierloom.capacity import catalog, published_others, published_tpch
from tierloom.nouns import Machine, Profile

if TYPE_CHECKING:
    from collections.abc import Callable

    from tierloom.capacity.catalog import Case
    from tierloom.capacity.findings import Finding

SPLITS = ("", "-nps2", "-nps4")
"""Machines of the catalog that split the EPYC 9754's socket in one, two or four nodes."""


def findings(name: str) -> list[Finding]:
    """The findings of one case.

    Raises:
        RequestError: There is no such case.
    """
    case = catalog.load(name)
    return ANSWERS[name](case)


def _cloverleaf(case: Case) -> list[Finding]:
    machines = [Machine.load(case.machine + split) for split in SPLITS]
    return published_others.cloverleaf_findings(case, machines, Profile.load(case.value("profile")))


def _keydb(case: Case) -> list[Finding]:
    rates = published_others.keydb_rates(case, Machine.load(case.machine))
    return [*published_others.order_findings(case, rates), *published_others.near_findings(case, rates)]


def _sql(case: Case) -> list[Finding]:
    rates = published_others.sql_rates(case, Machine.load(case.machine))
    return [*published_others.order_findings(case, rates), *published_others.hot_findings(case, rates)]


ANSWERS: dict[str, Callable[[Case], list[Finding]]] = {
    "cloverleaf": _cloverleaf,
    "cost-model": published_others.cost_findings,
    "keydb": _keydb,
    "spark-sql": _sql,
    "spark-svm": published_others.svm_findings,
    "tpch-mssql": published_tpch.findings,
}
