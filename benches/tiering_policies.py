"""Ours against every policy, workload and amount of fast memory: minutes.

    python benches/tiering_policies.py [NAME…]

Names of machines, workloads and profiles leave others of their kind out. The published study beside ours is in
`tierloom reproduce --only liu24`.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Sequence
from itertools import product

import tierloom
from tierloom.simulating import Workload, simulate, terms

NODES = ["ldram", "cxl"]
MACHINES = ("liu-a", "bytedance-spr-a1000")


def of(all_names: Sequence[str], asked: Collection[str]) -> list[str]:
    """Those that are asked for, or all."""
    return [name for name in all_names if name in asked] or list(all_names)


def against_all(asked: Collection[str]) -> Iterator[str]:
    """Ours against everything: each catalog workload, 25, 50 and 75 % of fast memory, two machines."""
    policies = [name for name, _, _ in terms()["policies"]]
    static = ("first-touch", "interleave", "object-interleave", "soar", "weighted:ldram=3+cxl=1")
    names = [*Workload.names(), *tierloom.Profile.names()]
    for place, name, share in product(of(MACHINES, asked), of(names, asked), ("25%", "50%", "75%")):
        machine = tierloom.Machine.load(place)
        source = Workload.load(name) if name in Workload.names() else tierloom.Profile.load(name)
        results: dict[str, float] = {}
        for policy, placement in [
            ("tierloom", "first-touch"),
            *(("none", p) for p in static),
            *((p, static[0]) for p in policies),
        ]:
            try:
                done = simulate(source, machine, policy, placement=placement, nodes=NODES, fast_memory=share)
            except tierloom.TierloomError:
                continue
            results[f"{policy}, {placement}"] = done.time_s
        ours = results.pop("tierloom, first-touch", None)
        if ours is None or not results:
            yield f"{place:22}{name:18}{share}  does not fit"
            continue
        best = min(results, key=lambda key: results[key])
        said = "ahead" if ours <= results[best] * 1.01 else "BEHIND"
        yield f"{place:22}{name:18}{share}  {ours:9.1f} s, next {best:24} {results[best]:9.1f} s  {said}"


def main() -> None:
    """Prints the table."""
    for line in against_all(sys.argv[1:]):
        print(line, flush=True)


if __name__ == "__main__":
    main()
