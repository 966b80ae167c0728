"""Spark's SVM, the cost model's example, CloverLeaf, KeyDB and Spark SQL: published figures beside ours."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from tierloom.capacity import cost, store
from tierloom.capacity.findings import WITHIN, Finding, Verdict, near
from tierloom.capacity.fit import solve
from tierloom.capacity.keyvalue import Load, configurations
from tierloom.capacity.runs import Run
from tierloom.offload.host import Host, Tier, host_of
from tierloom.units import GB, LINE_BYTES

if TYPE_CHECKING:
    from tierloom.capacity.catalog import Case
    from tierloom.capacity.spill import Spill
    from tierloom.nouns import Machine

BASE_S = 1000.0
"""Time of the run that speed-ups are over; any would do."""


def svm(case: Case, without: int | None = None) -> Spill:
    """The job that the published speed-ups give, all of them or without one."""
    gains = [1.0, *case.claims["speed_ups"]]
    sizes = [case.value("base_gb"), *case.value("memory_gb")]
    runs = [
        Run(memory_bytes=gb * GB, seconds=BASE_S / gain)
        for number, (gb, gain) in enumerate(zip(sizes, gains, strict=True))
        if number - 1 != without
    ]
    return solve(runs)


def svm_findings(case: Case) -> list[Finding]:
    """Fitted to all, and each from the others: four runs are few for a curve of three constants."""
    base, fitted = case.value("base_gb") * GB, svm(case)
    made = []
    for number, (gb, gain) in enumerate(zip(case.value("memory_gb"), case.claims["speed_ups"], strict=True)):
        ours = fitted.speed_up(base, gb * GB)
        verdict: Verdict = "fitted" if abs(ours / gain - 1.0) <= WITHIN else "missed"
        made.append(_finding(f"{gb} GB: speed-up", gain, ours, verdict, "the curve is fitted to all three"))
        unseen = svm(case, number)
        made.append(
            _near(f"{gb} GB: speed-up, unseen", gain, unseen.speed_up(base, gb * GB), "from the other two alone")
        )
    return made


def cost_findings(case: Case) -> list[Finding]:
    """The printed example, to the digits printed."""
    names = ("dram", "cxl", "dram_to_cxl", "server_cost")
    ours = cost.saving(cost.Rates(**{name: case.value(name) for name in names}))
    return [_exact("servers", case, ours.servers), _exact("saving", case, ours.saving)]


def _exact(name: str, case: Case, ours: float) -> Finding:
    published = case.claims[name]
    return _finding(name, published, ours, "reproduced" if round(ours, 4) == published else "missed", "")


def keydb_rates(case: Case, machine: Machine) -> dict[str, float]:
    """Operations a second by configuration."""
    host = host_of(machine)
    load = Load(
        threads=case.value("threads"),
        compute_s=case.value("compute_us") * 1e-6,
        waits=case.value("waits"),
        record_bytes=case.value("record_bytes"),
        theta=case.value("theta"),
        fast_share=case.value("fast_share"),
        on_ssd=case.value("on_ssd"),
    )
    served = configurations(load, host.tier("ldram"), host.tier("cxl"))
    return {each.name: each.operations_s for each in served if each.name in case.claims["order"]}


def sql_rates(case: Case, machine: Machine) -> dict[str, float]:
    """Lines of a shuffle a second by configuration; both sockets work, the card is at the first.

    What does not fit is written to the drive while it is sorted and read when it is merged: one after the
    other.
    """
    tiers = _both_sockets(case, machine)
    line = store.Operation(
        compute_s=case.value("compute_ns") * 1e-9, waits=1.0 / case.value("lines_in_flight"), lines=1.0
    )
    spreads = {
        "mmem": store.interleaved({"dram": 1}),
        "hot-promote": store.Spread(memories={"dram": case.value("hot"), "cxl": 1.0 - case.value("hot")}),
        **{f"{a}:{b}": store.interleaved({"dram": a, "cxl": b}) for a, b in ((3, 1), (1, 1), (1, 3))},
    }
    each = case.value("cores") // 2
    rates = {
        name: sum(store.rate(line, side, spread, each).operations_s for side in tiers)
        for name, spread in spreads.items()
    }
    drive = case.value("ssd_gb_s") * 1e9 / LINE_BYTES
    for share in case.value("spilled"):
        rates[f"ssd-{share}"] = 1.0 / (1.0 / rates["mmem"] + 2.0 * share / case.value("passes") / drive)
    return rates


def _both_sockets(case: Case, machine: Machine) -> list[dict[str, Tier]]:
    """DRAM and CXL memory as each socket sees them; the machine file has a quarter of a socket's DRAM."""
    near, far = host_of(machine, socket="socket0"), host_of(machine, socket="socket1")
    wide = _times(near.tier("ldram"), case.value("quarters"))
    return [{"dram": wide, "cxl": _card(near)}, {"dram": wide, "cxl": _card(far)}]


def _card(host: Host) -> Tier:
    return host.tier("cxl")


def _times(tier: Tier, factor: float) -> Tier:
    """So many of a memory side by side."""
    curve = tuple((load * factor, latency) for load, latency in tier.curve)
    return replace(tier, read_bytes_s=tier.read_bytes_s * factor, curve=curve)


def order_findings(case: Case, rates: dict[str, float]) -> list[Finding]:
    """Each step of the published order: by how much the better configuration is faster."""
    made = []
    for better, worse in pairwise(case.claims["order"]):
        ratio = rates[better] / rates[worse]
        verdict: Verdict = "reproduced" if ratio > 1.0 else "missed"
        made.append(_finding(f"{better} over {worse}", 1.0, ratio, verdict, "order only: at least 1"))
    return made


def near_findings(case: Case, rates: dict[str, float]) -> list[Finding]:
    """That one configuration comes near another."""
    claim = case.claims["near"]
    ratio = rates[claim["above"]] / rates[claim["below"]]
    verdict: Verdict = "reproduced" if ratio <= 1.0 + claim["within"] else "missed"
    return [_finding(f"{claim['above']} over {claim['below']}: near", 1.0, ratio, verdict, "within 5 %")]


def hot_findings(case: Case, rates: dict[str, float]) -> list[Finding]:
    """How much slower hot-page promotion is than DRAM alone."""
    ratio = rates["mmem"] / rates["hot-promote"]
    note = "promotion itself costs nothing here: no faults, no copies, no pages that cool before they pay"
    return [_near("mmem over hot-promote", case.claims["hot_promote"], ratio, note)]


def _near(name: str, published: float, ours: float, note: str) -> Finding:
    return _finding(name, published, ours, near(ours, published), note)


def _finding(name: str, published: float, ours: float, verdict: Verdict, note: str) -> Finding:
    return Finding(name=name, published=published, ours=ours, verdict=verdict, note=note)
