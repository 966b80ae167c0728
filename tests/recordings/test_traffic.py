"""Bytes from memory and patterns of recordings, for objects of which a formula tells them.

The cache of the machine that recorded is 32 MiB. What sweeps over much more comes from memory each time and is written
back; what fits comes once. The truth's counts are the formula's input, so an object stands here only in programs
whose counts are right.
"""

from __future__ import annotations

from typing import NamedTuple

import pytest
from recordings.estimates import bench, profile, truth

CACHE = 32 << 20
LINE = 64
ELEMENT = 8


class Traffic(NamedTuple):
    """Bytes from and to memory of an object, and by which pattern most of its accesses go."""

    fetched: float
    written_back: float
    pattern: str


def true_object(name: str, wanted: str) -> dict:
    return next(one for one in truth(name)["objects"] if one["name"] == wanted)


def traffic(name: str, wanted: str) -> Traffic:
    """What the profile of a recording says of an object, over all phases."""
    names = bench().find(profile(name), true_object(name, wanted))
    every = [access for phase in profile(name)["phases"] for access in phase["accesses"] if access["object"] in names]
    accesses: dict[str, float] = {}
    for one in every:
        accesses[one["pattern"]] = accesses.get(one["pattern"], 0) + one["reads"] + one["writes"]
    fetched = sum(one["dram_read_bytes"] for one in every)
    written_back = sum(one["dram_write_bytes"] for one in every)
    return Traffic(fetched, written_back, max(accesses, key=lambda pattern: accesses[pattern]))


@pytest.mark.parametrize("level", ["O2", "O3"])
@pytest.mark.parametrize(("program", "wanted"), [("stream", "a"), ("stream", "b"), ("stream", "c")])
def test_what_is_swept_over_and_does_not_fit_comes_each_time(program: str, level: str, wanted: str) -> None:
    name = f"{program}-{level}"
    found, right = traffic(name, wanted), true_object(name, wanted)
    # A store fetches its line first. The last lines that were written are in the cache yet.
    assert found.fetched == pytest.approx(right["read_bytes"] + right["write_bytes"], rel=0.05)
    assert right["write_bytes"] * 0.95 - CACHE * 3 <= found.written_back <= right["write_bytes"] * 1.05


@pytest.mark.parametrize("level", ["O2", "O3"])
@pytest.mark.parametrize("wanted", ["value", "column"])
def test_a_matrix_that_does_not_fit_is_read_from_memory_by_each_product(level: str, wanted: str) -> None:
    name = f"spmv-{level}"
    assert traffic(name, wanted).fetched == pytest.approx(true_object(name, wanted)["read_bytes"], rel=0.15)


@pytest.mark.parametrize("level", ["O2", "O3"])
@pytest.mark.parametrize(
    ("program", "wanted"),
    [("nbody", "x"), ("nbody", "y"), ("nbody", "mass"), ("histogram", "keys"), ("histogram", "common")],
)
def test_what_fits_comes_once(program: str, level: str, wanted: str) -> None:
    name = f"{program}-{level}"
    found, right = traffic(name, wanted), true_object(name, wanted)
    assert found.fetched == pytest.approx(right["bytes"], rel=0.05)
    assert found.written_back <= right["bytes"] * 1.05


def accesses_to(name: str, wanted: str) -> list[dict]:
    names = bench().find(profile(name), true_object(name, wanted))
    return [access for phase in profile(name)["phases"] for access in phase["accesses"] if access["object"] in names]


def filled(name: str, wanted: str) -> float:
    """Share of an object's lines from memory, not in the order of addresses, that the kernel had just brought."""
    scattered = [access for access in accesses_to(name, wanted) if access["pattern"] in {"random", "chain"}]
    fetched = sum(access["dram_read_bytes"] for access in scattered)
    return sum(access["touched"]["filled_bytes"] for access in scattered) / fetched


@pytest.mark.parametrize("level", ["O2", "O3"])
@pytest.mark.parametrize(("program", "wanted"), [("linked_list", "nodes"), ("hash_join", "heads")])
def test_nobody_waits_for_pages_that_were_just_zeroed(program: str, wanted: str, level: str) -> None:
    assert filled(f"{program}-{level}", wanted) > 0.99


@pytest.mark.parametrize("level", ["O2", "O3"])
def test_a_chain_waits_for_what_does_not_fit(level: str) -> None:
    assert filled(f"phases-{level}", "L") < 0.5


@pytest.mark.parametrize("level", ["O2", "O3"])
def test_what_streams_leave_room_for_comes_once(level: str) -> None:
    # Cachegrind with this cache: probing fetches the probes and the output, line by line, and no row and no head.
    name = f"hash_join-{level}"
    for wanted in ("rows", "heads"):
        assert traffic(name, wanted).fetched < 0.05 * LINE * true_object(name, wanted)["reads"]
    # What is joined is written behind each other, whichever rounds write it.
    assert traffic(name, "output").pattern == "stream"
    written = sum(access["write_bytes"] for access in accesses_to(name, "output"))
    assert traffic(name, "output").fetched == pytest.approx(written, rel=0.05)


def let_through(name: str, wanted: str) -> dict[int, float]:
    """By size of the cache, the share of an object's touched lines that comes from memory."""
    names = bench().find(profile(name), true_object(name, wanted))
    (curve,) = [one["miss_curve"] for one in profile(name)["objects"] if one["name"] in names]
    return {point["cache_bytes"]: point["share"] for point in curve}


@pytest.mark.parametrize("level", ["O2", "O3"])
@pytest.mark.parametrize(
    ("program", "wanted"), [("stream", "a"), ("gather", "A"), ("spmv", "value"), ("hash_join", "rows")]
)
def test_at_the_cache_of_the_run_a_curve_says_what_the_run_did(program: str, wanted: str, level: str) -> None:
    name = f"{program}-{level}"
    every = accesses_to(name, wanted)
    fetched, touched = (sum(one["dram_read_bytes"] for one in every), sum(one["touched"]["bytes"] for one in every))
    assert fetched / touched == pytest.approx(let_through(name, wanted)[CACHE], rel=0.01)


@pytest.mark.parametrize("level", ["O2", "O3"])
def test_random_touches_miss_by_the_part_that_does_not_fit_and_sweeps_all_or_not(level: str) -> None:
    size, random = true_object(f"gather-{level}", "A")["bytes"], let_through(f"gather-{level}", "A")
    first = min(random.values())
    assert random[1 << 31] == first
    for mib in (1, 8, 32):
        assert random[mib << 20] == pytest.approx(1 - (mib << 20) / size, abs=0.1)
    swept = let_through(f"stream-{level}", "a")
    assert swept[1 << 20] == pytest.approx(swept[CACHE], rel=0.01)
    assert swept[CACHE] > 0.9
    assert swept[1 << 31] < 0.2


@pytest.mark.parametrize("level", ["O2", "O3"])
def test_random_reads_fetch_a_line_each_but_for_what_is_in_the_cache(level: str) -> None:
    name = f"gather-{level}"
    found, right = traffic(name, "A"), true_object(name, "A")
    built = right["bytes"]
    random = right["read_bytes"] / ELEMENT * LINE
    assert built + random * (1 - CACHE / right["bytes"]) <= found.fetched * 1.1
    assert found.fetched <= (built + random) * 1.05


@pytest.mark.parametrize("level", ["O2", "O3"])
@pytest.mark.parametrize(
    ("program", "wanted", "pattern"),
    [
        ("stream", "a", "stream"),
        ("gather", "A", "random"),
        ("gather", "idx", "stream"),
        ("histogram", "keys", "stream"),
        ("histogram", "common", "random"),
        ("hash_join", "probes", "stream"),
        ("linked_list", "nodes", "chain"),
        ("nbody", "mass", "stream"),
        ("spmv", "value", "stream"),
        ("spmv", "x", "random"),
    ],
)
def test_most_accesses_go_by_their_pattern(program: str, level: str, wanted: str, pattern: str) -> None:
    assert traffic(f"{program}-{level}", wanted).pattern == pattern


@pytest.mark.parametrize("level", ["O2", "O3"])
def test_heads_of_chains_are_random(level: str) -> None:
    assert traffic(f"hash_join-{level}", "heads").pattern == "random"
