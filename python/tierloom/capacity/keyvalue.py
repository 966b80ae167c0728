"""A key-value store over DRAM, CXL memory and SSD: what each way of placing its records brings.

The configurations are those of the EuroSys 2024 study of ASIC CXL memory (doi 10.1145/3627703.3650061), so
that its cost model can be asked with rates that a machine's curves give.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tierloom.capacity import store
from tierloom.capacity.skew import THETA
from tierloom.errors import RequestError
from tierloom.offload.host import block_tier
from tierloom.units import LINE_BYTES, PAGE_BYTES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tierloom.offload.host import Tier

RATIOS = ((3, 1), (1, 1), (1, 3))


@dataclass(frozen=True, kw_only=True)
class Load:
    """What the store's threads do.

    Attributes:
        threads: Server threads.
        compute_s: Computing of an operation, network included.
        waits: Cache lines waited for one by one.
        record_bytes: Size of a record.
        theta: Zipf's exponent; 0 is even.
        fast_share: Part of the data that DRAM holds under hot-page promotion.
        on_ssd: Parts of the data that are tried on SSD.
    """

    threads: int = 7
    compute_s: float = 5e-6
    waits: float = 6.0
    record_bytes: int = 1000
    theta: float = THETA
    fast_share: float = 0.5
    on_ssd: Sequence[float] = (0.2, 0.4)

    def __post_init__(self) -> None:
        if self.threads < 1 or self.compute_s <= 0.0 or self.waits <= 0.0 or self.record_bytes < 1:
            message = "threads, computing, waits and record size have to be above 0\nhint: check them"
            raise RequestError(message)
        if not 0.0 <= self.theta <= 2.0 or not all(0.0 < part < 1.0 for part in (self.fast_share, *self.on_ssd)):
            message = "shares lie between 0 and 1, Zipf's exponent between 0 and 2\nhint: write for example 50%, 0.99"
            raise RequestError(message)

    @property
    def operation(self) -> store.Operation:
        """One operation: the lines of the record come with the last one that is waited for."""
        lines = self.waits + math.ceil(self.record_bytes / LINE_BYTES)
        return store.Operation(compute_s=self.compute_s, waits=self.waits, lines=lines)


@dataclass(frozen=True, kw_only=True)
class Served:
    """One configuration: operations a second, where accesses go, and what bounds it."""

    name: str
    operations_s: float
    on_cxl: float
    on_ssd: float
    bound: str


def configurations(load: Load, dram: Tier, cxl: Tier, drive: Tier | None = None) -> list[Served]:
    """All in DRAM, all in CXL memory, interleaved, hot pages promoted, and a part or all on SSD."""
    near, far = dram.name, cxl.name
    records = max(1, PAGE_BYTES // load.record_bytes)
    spreads = {
        "mmem": store.interleaved({near: 1}),
        "hot-promote": store.promoted(near, far, load.fast_share, records, load.theta),
        **{f"{a}:{b}": store.interleaved({near: a, far: b}) for a, b in RATIOS},
        "cxl": store.interleaved({far: 1}),
        **{f"ssd-{share:g}": store.evicted(near, share, load.theta) for share in load.on_ssd},
        "ssd": store.Spread(memories={near: 1.0}, storage=1.0),
    }
    return [
        _served(name, load, spread, [dram, cxl], drive or block_tier(1e12, 1.0, 1.0))
        for name, spread in spreads.items()
    ]


def _served(name: str, load: Load, spread: store.Spread, tiers: Sequence[Tier], drive: Tier) -> Served:
    found = store.rate(load.operation, {tier.name: tier for tier in tiers}, spread, load.threads, drive)
    far = spread.memories.get(tiers[1].name, 0.0)
    return Served(name=name, operations_s=found.operations_s, on_cxl=far, on_ssd=spread.storage, bound=found.bound)
