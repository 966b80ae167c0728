"""The HPC study of real CXL memory, ours beside the published one.

    python benches/hpc_study.py [WORKLOAD…]

First a table of every policy per workload (server A, 32 threads, 128 and 64 GiB of local DRAM), then
every published finding with what the model says, and for those that it misses, why. Nothing in the
catalog was fitted to these findings: machines hold published latencies and bandwidths, profiles hold
sizes, sweeps and operation counts of the sources.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from statistics import fmean
from textwrap import fill
from typing import Any

import tierloom

WORKLOADS = ("bt-e", "sp-e", "lu-e", "mg-e", "ft-d", "cg-e", "xsbench-xl")
THREADS = 32
BUDGETS = ("128GiB", "64GiB")
ALL = ("ldram", "rdram", "cxl")
PAIR = ("ldram", "cxl")
GIB = 1 << 30

Policy = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """One run of the study: a workload, how wide it runs, and the memory it may use."""

    workload: str
    threads: int = THREADS
    nodes: tuple[str, ...] = ALL
    budget: str | None = None
    machine: str = "liu-a"
    policies: tuple[str, ...] | None = None


@cache
def results(case: Case) -> dict[str, Policy]:
    """Every policy of a case by name; empty where the data does not fit at all."""
    profile = tierloom.Profile.load(case.workload)
    machine = tierloom.Machine.load(case.machine)
    try:
        answer = tierloom.compare(
            profile,
            machine,
            threads=case.threads,
            nodes=case.nodes,
            fast_memory=case.budget,
            policies=case.policies,
        )
    except tierloom.TierloomError:
        return {}
    return {policy["policy"]: dict(policy) for policy in answer.data["policies"]}


def seconds(case: Case, policy: str) -> float | None:
    """Predicted time of a policy, if it can be used."""
    found = results(case).get(policy)
    return found["outcome"]["Ok"]["time_s"] if found and "Ok" in found["outcome"] else None


def ratio(case: Case, slower: str, faster: str) -> float | None:
    """How many times as long one policy takes as another."""
    above, below = seconds(case, slower), seconds(case, faster)
    return above / below if above and below else None


# --- tables -----------------------------------------------------------------------------------


def table(case: Case) -> Iterator[str]:
    """Every policy of a case, fastest first."""
    yield f"\n{case.workload}, {case.threads} threads, {case.budget} of ldram beside {', '.join(case.nodes[1:])}"
    rows = [(policy["outcome"]["Ok"], policy) for policy in results(case).values() if "Ok" in policy["outcome"]]
    best = min((outcome["time_s"] for outcome, _ in rows), default=0.0)
    if not rows:
        yield "  does not fit"
    for outcome, policy in sorted(rows, key=lambda row: row[0]["time_s"]):
        loads = "  ".join(f"{tier['memory']} {tier['gb_s']:.0f} GB/s" for tier in outcome["tiers"] if tier["gb_s"] > 0)
        times = f"{outcome['time_s']:11.1f} s  {outcome['time_s'] / best:6.2f}x  {policy['fast_bytes'] / GIB:6.1f} GiB"
        yield f"  {policy['policy']:<42}{times}  {loads}"


def tables(workloads: tuple[str, ...]) -> Iterator[str]:
    """The policy tables of the study."""
    for workload in workloads:
        for budget in BUDGETS:
            yield from table(Case(workload, budget=budget))


# --- findings ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Finding:
    """A published sentence, what we find, and why they differ where they do."""

    published: str
    ours: Callable[[], str]
    holds: Callable[[], bool]
    mechanism: str


def over(nodes: tuple[str, ...]) -> str:
    """Node list as policies spell it."""
    return "+".join(nodes)


def gains(budget: str, nodes: tuple[str, ...], against: str, policy: str) -> dict[str, float]:
    """By workload, how many times as long `against` takes as `policy`."""
    cases = {workload: Case(workload, nodes=nodes, budget=budget) for workload in WORKLOADS}
    found = {workload: ratio(case, against, policy) for workload, case in cases.items()}
    return {workload: gain for workload, gain in found.items() if gain is not None}


def object_level(nodes: tuple[str, ...]) -> str:
    """Name of the published rule's policy."""
    return f"object-interleave:{over(nodes)}"


def uniform(nodes: tuple[str, ...]) -> str:
    """Name of uniform interleaving."""
    return f"interleave:{over(nodes)}"


def spread(values: dict[str, float]) -> str:
    """Mean, and each workload."""
    if not values:
        return "no workload fits"
    return f"mean {fmean(values.values()):.2f}x ({', '.join(f'{name} {value:.2f}' for name, value in values.items())})"


def both(budget: str, against: Callable[[tuple[str, ...]], str]) -> str:
    """A comparison with the published rule, and with ours, over all nodes and over DRAM and CXL only."""
    lines = []
    for nodes in (ALL, PAIR):
        rule = gains(budget, nodes, against(nodes), object_level(nodes))
        own = gains(budget, nodes, against(nodes), "tierloom")
        lines += [f"over {over(nodes)}: published rule {spread(rule)}", f"  policy tierloom {spread(own)}"]
    return "\n".join(lines)


def mean_gain(budget: str, against: Callable[[tuple[str, ...]], str]) -> float:
    """Mean gain of the published rule over all nodes."""
    return fmean(gains(budget, ALL, against(ALL), object_level(ALL)).values())


def savings() -> dict[str, tuple[float, float]]:
    """By workload but XSBench: fast memory saved by the published rule, and time lost."""
    found = {}
    for workload in WORKLOADS[:-1]:
        case = Case(workload, budget="128GiB")
        table = results(case)
        used = table[object_level(ALL)]["fast_bytes"] / table["local"]["fast_bytes"]
        loss = ratio(case, object_level(ALL), "local")
        found[workload] = (1 - used, (loss or 1.0) - 1)
    return found


def least_memory() -> str:
    """What our own policy saves where 1 % may be lost."""
    shares = []
    for workload in WORKLOADS[:-1]:
        machine, profile = tierloom.Machine.load("liu-a"), tierloom.Profile.load(workload)
        answer = tierloom.compare(profile, machine, threads=THREADS, max_slowdown=0.01, policies=["tierloom"])
        full = min(profile.footprint_bytes, 128 * GIB)
        shares.append(1 - answer.chosen["fast_bytes"] / full)
    return f"policy tierloom, at most 1 % slower than all in ldram: saves {fmean(shares):.0%}"


def saved() -> str:
    """The savings in words."""
    rows = savings()
    mean_saved, mean_lost = (fmean(value[part] for value in rows.values()) for part in (0, 1))
    each = ", ".join(f"{name} {share:.0%} for {loss:+.1%}" for name, (share, loss) in rows.items())
    return f"saves {mean_saved:.0%}, loses {mean_lost:.1%} ({each})\n{least_memory()}"


def multigrid() -> dict[int, float]:
    """By threads: how much longer MG takes on CXL-preferred than interleaved over all."""
    found = {threads: ratio(Case("mg-e", threads), "preferred:cxl", uniform(ALL)) for threads in (4, 8, 16, 32)}
    return {threads: value - 1 for threads, value in found.items() if value}


def on_cxl(threads: int) -> dict[str, float]:
    """By workload: slow-down of CXL-preferred against local DRAM."""
    found = {workload: ratio(Case(workload, threads), "preferred:cxl", "local") for workload in WORKLOADS}
    return {workload: value for workload, value in found.items() if value}


def cloverleaf(threads: int) -> float:
    """Gain of 80:20 weighted interleave on the machine with four CZ120."""
    weighted = "weighted:dram=4+cxl=1"
    case = Case("cloverleaf-bm256", threads, ("dram", "cxl"), None, "micron-bergamo-cz120", ("local", weighted))
    return (ratio(case, "local", weighted) or 1.0) - 1


FINDINGS = [
    Finding(
        "128 GB of local DRAM: object-level interleaving beats uniform interleaving by 65 % on average",
        lambda: both("128GiB", uniform),
        lambda: 1.5 <= mean_gain("128GiB", uniform) <= 1.8,
        "The gain is the traffic that uniform interleaving sends to the card and the rule does not.",
    ),
    Finding(
        "128 GB: it saves 48 % of fast memory and loses less than 1 % against local-preferred (XSBench apart)",
        saved,
        lambda: all(loss < 0.01 for _, loss in savings().values()),
        "The card's one channel gives about 30 GB/s of mixed traffic. MG, FT and SP move many times that when "
        "all is local, so a third of their large objects on the card is a wall, whatever the rule. The "
        "study's codes would have to move far less per second, i.e. compute longer, than the published "
        "operation counts and rates give. Where the rule leaves the hot objects alone (LU, CG) it does lose "
        "less than 1 %, or gains.",
    ),
    Finding(
        "64 GB: it beats local-preferred 1.42x on average, up to 2.35x (BT)",
        lambda: both("64GiB", lambda _: "local"),
        lambda: 1.3 <= mean_gain("64GiB", lambda _: "local") <= 1.55,
        "Local-preferred spills the last-touched arrays. BT computes most of its time here (2.9 Gop/s a core, "
        "from a published log), so no placement moves it by more than a few per cent. The rule helps where "
        "what spilled was hot and small (CG's p); it hurts where it puts streams on the card that local-"
        "preferred had kept (MG, FT).",
    ),
    Finding(
        "64 GB: it beats uniform interleaving 1.32x on average, up to 1.84x (LU)",
        lambda: both("64GiB", uniform),
        lambda: 1.2 <= mean_gain("64GiB", uniform) <= 1.45,
        "LU and CG gain more than published: uniform interleaving sends a share of LU's block arrays (80 % of "
        "the traced traffic) and of CG's gathered vector to the card, the rule leaves them local. The trace "
        "ran without prefetch and with a scaled cache, so it may overstate how often those small arrays miss.",
    ),
    Finding(
        "MG: interleaving over all nodes beats CXL-preferred by 10 to 85 % from 4 to 32 threads",
        lambda: ", ".join(f"{threads} threads {gain:+.0%}" for threads, gain in multigrid().items()),
        lambda: all(0.10 <= gain <= 0.85 for gain in multigrid().values()),
        "At 4 threads streams are prefetched deep enough that the card is not yet full. From 8 threads on "
        "both runs are bound by the card, and the gain is the ratio of the traffic that goes there: 55 % (u "
        "and most of v) to 33 %.",
    ),
    Finding(
        "4 threads: BT and LU lose less than 3.2 % under CXL-preferred",
        lambda: ", ".join(f"{name} {value - 1:+.1%}" for name, value in on_cxl(4).items()),
        lambda: all(on_cxl(4)[name] < 1.032 for name in ("bt-e", "lu-e")),
        "LU's traced traffic is 5 TB an iteration in its block arrays: four threads already ask the card for "
        "more than it gives. BT's z sweep waits for lines a plane apart (4 in flight, from the log): most of "
        "its loss.",
    ),
    Finding(
        "32 threads: under CXL-preferred every workload takes at least 1.9x as long",
        lambda: ", ".join(f"{name} {value:.2f}x" for name, value in on_cxl(32).items()),
        lambda: all(value >= 1.9 for value in on_cxl(32).values()),
        "BT's 330 TB over the published rate of computing is 33 GB/s at 32 threads: just what the card gives. "
        "At the 1.7 times higher rate that the study's slow-down implies, it would be bound by the card as "
        "the others are.",
    ),
    Finding(
        "CloverLeaf gains about 17 % at 80:20 on an EPYC 9754 with four CZ120",
        lambda: ", ".join(f"{threads} threads {cloverleaf(threads):+.0%}" for threads in (32, 64, 128)),
        lambda: 0.14 <= cloverleaf(128) <= 0.20,
        "Bound by DRAM bandwidth throughout, its gain at full width is nearly 1/0.8; 32 threads cannot fill "
        "the channels. Time that does not scale with bandwidth (halos, summaries, imbalance) is not in the "
        "profile.",
    ),
]


def findings() -> Iterator[str]:
    """Published beside ours."""
    for finding in FINDINGS:
        holds = finding.holds()
        yield f"\npublished: {finding.published}"
        yield from ("     ours: " + finding.ours()).replace("\n", "\n           ").splitlines()
        yield f"           {'reproduced' if holds else 'not reproduced'}"
        if not holds:
            yield fill(
                finding.mechanism, 118, initial_indent="      why: ", subsequent_indent=" " * 11, break_on_hyphens=False
            )


def main() -> None:
    """Prints the study."""
    for line in tables(tuple(sys.argv[1:]) or WORKLOADS):
        print(line)
    print("\nMeans are over the workloads; a gain is the other's time over the policy's. Which nodes the study's runs")
    print("could use is not known here: both sets are shown, and the verdict is on all nodes.")
    for line in findings():
        print(line)


if __name__ == "__main__":
    main()
