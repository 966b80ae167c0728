"""How much DRAM and how much CXL memory to buy for a job that spills.

Both hold data that storage then need not; CXL memory is cheaper a byte and slower to hit. Hits cost by where
the hot data lies: `tiered` keeps the hottest in DRAM, `interleaved` spreads all data evenly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from tierloom.capacity.skew import THETA, hottest
from tierloom.errors import PlacementError, RequestError
from tierloom.offload.cpu_only import loaded
from tierloom.units import GIB

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tierloom.capacity.spill import Spill
    from tierloom.offload.host import Tier

Use = Literal["tiered", "interleaved"]
HOUR_S = 3600.0


@dataclass(frozen=True, kw_only=True)
class Prices:
    """What is paid for: USD per GiB of each memory, and for the server with everything else."""

    dram: float
    cxl: float
    server: float


@dataclass(frozen=True, kw_only=True)
class Hits:
    """What an access to CXL memory costs the job.

    Attributes:
        use: Where hot data lies.
        latency_ratio: Latency of CXL memory over that of DRAM, from a machine's curves.
        waiting: Share of the computing time that waits for DRAM when all data is there.
        theta: Exponent of the Zipf law that says how uneven accesses are; 0 for even.
    """

    use: Use
    latency_ratio: float
    waiting: float
    theta: float = THETA

    def __post_init__(self) -> None:
        if not 0.0 <= self.waiting <= 1.0 or not 0.0 <= self.theta <= 2.0:
            message = (
                f"{self.waiting:.4g} of the computing time waits, Zipf's exponent is {self.theta:.4g}\n"
                "hint: a share is at most 1, the exponent 0 to 2; write for example --waiting 20% --theta 0.99"
            )
            raise RequestError(message)

    def on_cxl(self, dram_bytes: float, cxl_bytes: float) -> float:
        """Share of the accesses that go to CXL memory."""
        near = dram_bytes / (dram_bytes + cxl_bytes)
        return 1.0 - (hottest(near, theta=self.theta) if self.use == "tiered" else near)

    def slow_down(self, dram_bytes: float, cxl_bytes: float) -> float:
        """By how much computing takes longer, 1 for not at all."""
        return 1.0 + self.waiting * self.on_cxl(dram_bytes, cxl_bytes) * (self.latency_ratio - 1.0)


@dataclass(frozen=True, kw_only=True)
class Mix:
    """One purchase and what it brings.

    Attributes:
        dram_bytes: DRAM.
        cxl_bytes: CXL memory.
        seconds: Until all streams are done.
        results_h: Streams done in an hour.
        usd: Price of the server with its memory.
        usd_per_result_h: Price for each stream an hour.
        on_cxl: Share of accesses that go to CXL memory.
    """

    dram_bytes: float
    cxl_bytes: float
    seconds: float
    results_h: float
    usd: float
    usd_per_result_h: float
    on_cxl: float


def mix(job: Spill, dram_bytes: float, cxl_bytes: float, streams: float, hits: Hits, prices: Prices) -> Mix:
    """What one purchase brings."""
    slower = hits.slow_down(dram_bytes, cxl_bytes)
    seconds = job.computing_s(streams) * slower + job.spilling_s(dram_bytes + cxl_bytes, streams)
    usd = prices.server + (prices.dram * dram_bytes + prices.cxl * cxl_bytes) / GIB
    results = streams * HOUR_S / seconds
    return Mix(
        dram_bytes=dram_bytes,
        cxl_bytes=cxl_bytes,
        seconds=seconds,
        results_h=results,
        usd=usd,
        usd_per_result_h=usd / results,
        on_cxl=hits.on_cxl(dram_bytes, cxl_bytes) if cxl_bytes else 0.0,
    )


def mixes(
    job: Spill,
    drams: Sequence[float],
    cxls: Sequence[float],
    streams: float,
    hits: Hits,
    prices: Prices,
) -> list[Mix]:
    """Every purchase of the given sizes, cheapest first.

    Raises:
        RequestError: A size or price makes no sense.
    """
    if not drams or min(drams) <= 0.0 or not cxls or min(cxls) < 0.0:
        message = "there has to be some DRAM, and no size may be negative\nhint: --dram 64GiB,128GiB --cxl 0B,128GiB"
        raise RequestError(message)
    if min(prices.dram, prices.cxl, prices.server) < 0.0:
        message = "a price is negative\nhint: prices are USD per GiB, and USD for the server"
        raise RequestError(message)
    made = [mix(job, dram, cxl, streams, hits, prices) for dram in sorted(set(drams)) for cxl in sorted(set(cxls))]
    return sorted(made, key=lambda each: (each.usd, -each.results_h))


def choose(made: Iterable[Mix], *, results_h: float | None = None, usd: float | None = None) -> Mix:
    """The purchase to take.

    The cheapest that brings `results_h`; or the fastest for at most `usd`; or else the one that costs least
    for each result.

    Raises:
        PlacementError: None does what was asked for.
    """
    left = [
        each for each in made if (results_h is None or each.results_h >= results_h) and (usd is None or each.usd <= usd)
    ]
    if not left:
        best = max(made, key=lambda each: each.results_h)
        message = (
            "no purchase of these sizes does that\n"
            f"hint: the fastest brings {best.results_h:.4g} results an hour for {best.usd:.0f} USD"
        )
        raise PlacementError(message)
    if results_h is not None:
        return min(left, key=lambda each: (each.usd, -each.results_h))
    if usd is not None:
        return max(left, key=lambda each: (each.results_h, -each.usd))
    return min(left, key=lambda each: each.usd_per_result_h)


def frontier(made: Sequence[Mix]) -> list[Mix]:
    """Purchases that no cheaper one beats, cheapest first."""
    best: list[Mix] = []
    for each in sorted(made, key=lambda one: (one.usd, -one.results_h)):
        if not best or each.results_h > best[-1].results_h:
            best.append(each)
    return best


def latency_ratio(dram: Tier, cxl: Tier, share: float, bytes_s: float) -> float:
    """Loaded latency of CXL memory over that of DRAM when the job moves `bytes_s`, a `share` of it on CXL.

    Raises:
        RequestError: One of them cannot carry its part, so it has no latency under that load.
    """
    most = min(cxl.read_bytes_s / share, dram.read_bytes_s / (1.0 - share))
    if not 0.0 <= bytes_s <= most:
        message = (
            f"{dram.name} and {cxl.name} cannot carry {bytes_s / 1e9:.4g} GB/s, {share:.0%} of it on {cxl.name}\n"
            f"hint: traffic of 0 to {most / 1e9:.4g} GB/s has a latency there"
        )
        raise RequestError(message)
    return loaded(cxl, share * bytes_s) / loaded(dram, (1.0 - share) * bytes_s)
