"""What holds for any job, data set and purchase."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tierloom.capacity import Heat, Hits, Layer, Prices, Rates, Spill, cheapest, choose, frontier, mixes, saving, shape
from tierloom.capacity.cost import break_even_cost, spare_revenue
from tierloom.capacity.keyvalue import Load
from tierloom.capacity.skew import hottest
from tierloom.capacity.spill import amdahl
from tierloom.errors import PlacementError, RequestError

GIB = 2.0**30
JOBS = st.builds(
    Spill,
    compute_s=st.floats(1.0, 1e4),
    storage_s=st.floats(0.0, 1e5),
    scan_s=st.floats(0.0, 1e4),
    exponent=st.floats(0.25, 8.0),
    reference_bytes=st.just(64 * GIB),
    working_set_bytes=st.one_of(st.just(math.inf), st.floats(8 * GIB, 1024 * GIB)),
    alone=st.floats(0.01, 1.0),
    sharing=st.floats(0.0, 1.0),
) | st.builds(
    Spill,
    compute_s=st.floats(1.0, 1e4),
    storage_s=st.floats(0.0, 1e5),
    exponent=st.floats(-1.0, -0.25),
    reference_bytes=st.just(64 * GIB),
    working_set_bytes=st.floats(8 * GIB, 1024 * GIB),
)
MEMORY = st.floats(1 * GIB, 4096 * GIB)


@given(JOBS, MEMORY, MEMORY, st.integers(1, 64))
def test_more_memory_is_never_slower(job: Spill, one: float, other: float, streams: int) -> None:
    less, more = sorted((one, other))
    assert job.seconds(more, streams) <= job.seconds(less, streams) * (1 + 1e-12)
    assert job.speed_up(less, more, streams) >= 1 - 1e-12


@given(JOBS, MEMORY, st.integers(1, 63))
def test_more_streams_take_longer_and_wait_more(job: Spill, memory: float, streams: int) -> None:
    assert job.seconds(memory, streams + 1) >= job.seconds(memory, streams)
    assert 0.0 <= job.stall(memory, streams) <= 1.0


@given(JOBS, st.integers(1, 16))
def test_nothing_spills_from_the_working_set_on(job: Spill, streams: int) -> None:
    if not math.isinf(job.working_set_bytes):
        enough = job.working_set_bytes * streams**job.sharing * (1 + 1e-9)
        assert job.spilling_s(enough, streams) == 0.0
        below = job.working_set_bytes * streams**job.sharing * (1 - 1e-9)
        assert job.spilling_s(below, streams) <= 1e-3 * (job.storage_s * streams + job.scan_s + 1e-9) * 64


@given(st.floats(0.0, 0.99), st.floats(0.0, 1.0))
def test_amdahl_is_what_the_times_say(stall: float, traffic: float) -> None:
    before, after = 1.0, (1.0 - stall) + stall * traffic
    assert amdahl(stall, traffic) == pytest.approx(before / after)


def test_throughput_peaks_where_streams_run_out_of_memory() -> None:
    job = Spill(compute_s=100, alone=0.1, storage_s=0.5, exponent=2, reference_bytes=64 * GIB)
    peaks = [job.peak(gib * GIB) for gib in (64, 128, 256)]
    assert peaks == sorted(peaks)
    assert peaks[0] < peaks[-1]
    assert job.throughput(64 * GIB, peaks[0]) > job.throughput(64 * GIB, peaks[0] + 4)


@given(st.floats(0.0, 1.0), st.integers(1, 8), st.floats(0.0, 1.3))
def test_the_hottest_part_gets_at_least_its_share(share: float, records: int, theta: float) -> None:
    assert share - 1e-9 <= hottest(share, records, theta) <= 1 + 1e-9


def test_pages_of_many_records_are_less_uneven() -> None:
    shares = [hottest(0.1, records) for records in (1, 4, 16, 64)]
    assert shares == sorted(shares, reverse=True)


# --- money ------------------------------------------------------------------------------------


@given(st.floats(1.01, 50), st.floats(0.05, 1.0), st.floats(0.1, 10))
def test_the_cost_model_gives_both_clusters_the_same_time(dram: float, nearness: float, ratio: float) -> None:
    cxl = max(1.0 + (dram - 1.0) * nearness, 1.0 + 1e-6)
    answer = saving(Rates(dram=dram, cxl=min(cxl, dram), dram_to_cxl=ratio))
    each, working_set = 1.0, 1e6
    extra = each / ratio
    without = 100 * each / dram + (working_set - 100 * each)
    servers = 100 * answer.servers
    with_cxl = servers * (each / dram + extra / min(cxl, dram)) + (working_set - servers * (each + extra))
    assert with_cxl == pytest.approx(without, rel=1e-9)


def test_the_break_even_cost_saves_nothing() -> None:
    rates = Rates(dram=10, cxl=8, dram_to_cxl=2)
    even = break_even_cost(rates)
    assert saving(Rates(dram=10, cxl=8, dram_to_cxl=2, server_cost=even)).saving == pytest.approx(0.0)


@pytest.mark.parametrize(
    "rates",
    [
        {"dram": 8, "cxl": 10, "dram_to_cxl": 2},
        {"dram": 10, "cxl": 1, "dram_to_cxl": 2},
        {"dram": 10, "cxl": 8, "dram_to_cxl": 0},
        {"dram": 10, "cxl": 8, "dram_to_cxl": 2, "server_cost": 0},
    ],
)
def test_rates_that_make_no_sense_are_refused(rates: dict[str, float]) -> None:
    with pytest.raises(RequestError, match="hint: "):
        Rates(**rates)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (lambda: spare_revenue(1.0, 0.2), "unsold share"),
        (lambda: spare_revenue(0.5, 1.1), "discount"),
        (lambda: shape(0, GIB, GIB, 0.2), "above 0"),
        (lambda: shape(8, GIB, 2 * GIB, 0.2), "less than one vCPU"),
        (lambda: cheapest([], 0.0, 1.0, server_usd=1.0), "above 0"),
        (lambda: mixes(JOB, [0.0], [0.0], 1.0, HITS, Prices(dram=4.0, cxl=3.0, server=0.0)), "some DRAM"),
        (lambda: mixes(JOB, [GIB], [0.0], 1.0, HITS, Prices(dram=-1.0, cxl=3.0, server=0.0)), "price"),
        (lambda: Load(waits=0.0), "above 0"),
        (lambda: Load(theta=2.5), "between 0 and"),
    ],
)
def test_what_makes_no_sense_is_refused_in_words(asked: Callable[[], object], said: str) -> None:
    with pytest.raises(RequestError, match=f"{said}[^\\0]*\nhint: "):
        asked()


@given(st.floats(0.0, 0.9), st.floats(0.0, 1.0))
def test_spare_revenue_counts_what_is_sold(unsold: float, discount: float) -> None:
    before, after = 1.0 - unsold, 1.0 - unsold + unsold * (1.0 - discount)
    assert spare_revenue(unsold, discount) == pytest.approx(after / before - 1.0, abs=1e-9)


def test_a_host_with_enough_dram_gains_nothing() -> None:
    answer = shape(64, 512 * GIB, 4 * GIB, 0.2)
    assert (answer.sold, answer.missing_bytes, answer.revenue) == (64, 0.0, 0.0)


DRAM = Layer(name="dram", bytes_s=10e9, usd_per_gib=4.0, most_bytes=1024 * GIB)
CXL = Layer(name="cxl", bytes_s=8e9, usd_per_gib=3.0, most_bytes=512 * GIB)
SSD = Layer(name="ssd", bytes_s=1e9, usd_per_gib=0.1, most_bytes=1e18)


def test_the_programme_needs_as_many_servers_as_the_closed_form() -> None:
    """With servers that cost everything, fewest servers win: the closed form's ratio, to whole servers."""
    data = 4e15
    dram_full = 1024 * GIB
    without = 1000
    seconds = (without * dram_full / DRAM.bytes_s + (data - without * dram_full) / SSD.bytes_s) / without
    plain = cheapest([DRAM, SSD], data, seconds * (1 + 1e-9), server_usd=1e9, most_servers=1200)
    assert plain.servers == without
    both = cheapest([DRAM, CXL, SSD], data, seconds, server_usd=1e9, most_servers=1200)
    assert both.servers < plain.servers
    assert both.seconds <= seconds * (1 + 1e-6)
    assert sum(both.bytes.values()) == pytest.approx(data)


def test_hot_data_goes_to_the_fast_tier() -> None:
    heats = (Heat(data=0.1, touches=0.9), Heat(data=0.9, touches=0.1))
    even = cheapest([DRAM, SSD], 1e13, 400.0, server_usd=1000)
    skewed = cheapest([DRAM, SSD], 1e13, 400.0, server_usd=1000, heats=heats)
    assert skewed.usd < even.usd
    assert skewed.bytes["dram"] <= 0.1 * 1e13 * (1 + 1e-6)


def test_more_time_never_costs_more() -> None:
    prices = [cheapest([DRAM, CXL, SSD], 1e13, seconds, server_usd=5000).usd for seconds in (50, 100, 200, 400)]
    assert prices == sorted(prices, reverse=True)


def test_no_cluster_is_fast_enough() -> None:
    with pytest.raises(PlacementError, match="hint: allow more time"):
        cheapest([SSD], 1e15, 1.0, server_usd=1, most_servers=10)


JOB = Spill(compute_s=60, storage_s=600, exponent=2, reference_bytes=64 * GIB, working_set_bytes=512 * GIB)
PRICES = Prices(dram=4.0, cxl=2.0, server=2000.0)
HITS = Hits(use="tiered", latency_ratio=2.8, waiting=0.2)


def test_purchases_are_what_they_cost_and_bring() -> None:
    made = mixes(JOB, [64 * GIB, 256 * GIB], [0.0, 256 * GIB], 1, HITS, PRICES)
    assert [each.usd for each in made] == [2256, 2768, 3024, 3536]
    cheapest_fast = choose(made, results_h=30)
    assert cheapest_fast.results_h >= 30
    assert all(each.usd >= cheapest_fast.usd for each in made if each.results_h >= 30)
    for_money = choose(made, usd=3000)
    assert for_money.results_h == max(each.results_h for each in made if each.usd <= 3000)
    assert choose(made).usd_per_result_h == min(each.usd_per_result_h for each in made)


def test_the_frontier_is_beaten_by_nothing_cheaper() -> None:
    made = mixes(JOB, [gib * GIB for gib in (32, 64, 128, 256, 512)], [0.0, 64 * GIB, 256 * GIB], 2, HITS, PRICES)
    for best in frontier(made):
        assert not any(each.usd < best.usd and each.results_h >= best.results_h for each in made)


def test_interleaving_pays_more_for_slow_memory_than_tiering() -> None:
    spread = Hits(use="interleaved", latency_ratio=2.8, waiting=0.2)
    assert spread.slow_down(GIB, GIB) == pytest.approx(1 + 0.2 * 0.5 * 1.8)
    assert 1.0 < HITS.slow_down(GIB, GIB) < spread.slow_down(GIB, GIB)


def test_what_cannot_be_had_says_what_can() -> None:
    made = mixes(JOB, [64 * GIB], [0.0], 1, HITS, PRICES)
    with pytest.raises(PlacementError, match="the fastest brings"):
        choose(made, results_h=1e9)
