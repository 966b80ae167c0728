"""Every published case beside ours, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tierloom.capacity import catalog, published_others, published_tpch
from tierloom.nouns import Machine

if TYPE_CHECKING:
    from collections.abc import Callable

    from tierloom.capacity.catalog import Case
    from tierloom.capacity.findings import Finding


def findings(name: str) -> list[Finding]:
    """The findings of one case.

    Raises:
        RequestError: There is no such case.
    """
    case = catalog.load(name)
    return ANSWERS[name](case)


def _keydb(case: Case) -> list[Finding]:
    rates = published_others.keydb_rates(case, Machine.load(case.machine))
    return [*published_others.order_findings(case, rates), *published_others.near_findings(case, rates)]


def _sql(case: Case) -> list[Finding]:
    rates = published_others.sql_rates(case, Machine.load(case.machine))
    return [*published_others.order_findings(case, rates), *published_others.hot_findings(case, rates)]


ANSWERS: dict[str, Callable[[Case], list[Finding]]] = {
    "cost-model": published_others.cost_findings,
    "keydb": _keydb,
    "spark-sql": _sql,
    "spark-svm": published_others.svm_findings,
    "tpch-mssql": published_tpch.findings,
}
