"""What the table of objects says of one of them."""

from __future__ import annotations

from typing import Any

import pytest

from tierloom import Profile
from tierloom.nouns.profile_objects import place
from tierloom.report.table_layout.table import Table
from tierloom.report.tables import profiles

STACK = [
    {"module": "libstdc++.so.6", "offset": 16, "function": "operator new(unsigned long)"},
    {"module": "liboctave.so.9", "offset": 32, "function": "Array<double, std::allocator<double> >::fortran_vec()"},
    {"module": "app", "offset": 48, "function": "solve(int)", "line": "solve.cpp:7"},
    {"module": "app", "offset": 64, "function": "main", "line": "main.cpp:3"},
]


def accesses(made: Table) -> dict[str, str]:
    """What the table says of each object's accesses."""
    column = next(each for each in made.columns if each.key == "accesses")
    return {row["object"]: column.text(row) for row in made.rows}


@pytest.mark.parametrize(
    ("name", "where"),
    [
        ("Array::fortran_vec", "liboctave.so.9+0x20"),
        ("Array::fortran_vec by solve#2", "liboctave.so.9+0x20"),
        ("solve@solve.cpp:7", "solve.cpp:7"),
        ("a name by hand", "solve.cpp:7"),
        ("a", "solve.cpp:7"),
    ],
)
def test_an_object_is_allocated_at_the_statement_that_it_is_named_after(name: str, where: str) -> None:
    item: dict[str, Any] = {"name": name, "kind": "heap", "size_bytes": 1, "site": {"stack": STACK}}
    assert place(item) == where
    assert place({**item, "line": "main.cpp:3"}) == "main.cpp:3"
    item["site"]["stack"] = STACK[:1]
    assert place(item) == "libstdc++.so.6+0x10"


def test_the_table_says_why_what_is_only_written_is_half_reads() -> None:
    assert "a line that is only written is read first" in profiles.objects(Profile.load("mg-e")).note


def test_the_table_says_what_an_access_is() -> None:
    assert "a vector load of four doubles is four" in profiles.objects(Profile.load("mg-e")).note


def test_the_table_says_what_the_two_sizes_of_an_object_are_where_it_has_two() -> None:
    profile = Profile.load("mg-e")
    told = "size: memory that was touched, of the addresses that were asked for."
    assert told not in profiles.objects(profile).note
    profile.objects[0]["address_bytes"] = 2 * profile.objects[0]["size_bytes"]
    made = profiles.objects(profile)
    assert told in made.note
    assert any(" of " in str(row["size_bytes"]) for row in made.rows)


def counted(share: float) -> Profile:
    """A profile whose executions were counted, with this share of bytes that no sample shows."""
    profile = Profile.load("mg-e")
    profile.data["sampling"] = {
        "event": "cpu-clock",
        "hz": 1993.0,
        "samples": 10,
        "lost": 0,
        "skid_purity": 1.0,
        "not_sampled": {"accesses": 1e6 * share, "bytes": 8e6 * share, "share": share},
        "thread_local": {"accesses": 2000.0, "bytes": 16000.0, "share": 0.002},
    }
    return profile


def test_a_table_of_counts_says_what_their_intervals_leave_open() -> None:
    assert "what ± is left is which object it was" in profiles.caption(counted(0.0))


def test_what_no_sample_shows_is_told_with_what_to_do_where_it_is_much() -> None:
    assert "22 % of the bytes, in code that no sample shows" in profiles.caption(counted(0.22))
    assert "--hz 9973" not in profiles.caption(counted(0.01))


def test_what_was_counted_and_is_of_no_object_has_rows_of_its_own() -> None:
    rows = accesses(profiles.objects(counted(0.22)))
    assert rows["[not sampled]"] == "2.2e+05 22 %"
    assert rows["[thread-local]"] == "2.0e+03 0.2 %"
    assert "[not sampled]" not in accesses(profiles.objects(counted(0.0)))


def test_counted_traffic_is_told_with_its_cache_and_what_is_of_no_object() -> None:
    profile = counted(0.0)
    assert "lines counted" not in profiles.caption(profile)
    profile.data["sampling"]["counted_traffic"] = {"llc_bytes": 32 << 20, "elsewhere_bytes": 3 << 20}
    told = profiles.caption(profile)
    assert "lines counted in a simulated last-level cache of 32MiB" in told
    assert "3MiB more belong to none of these objects" in told


def test_the_table_says_how_far_off_a_count_may_be() -> None:
    profile = Profile.load("mg-e")
    assert "95 % interval, so much" not in profiles.objects(profile).note
    for item, high in zip(profile.data["objects"], (106.0, 1160.0), strict=False):
        item["accesses"] = {"count": 100.0, "low": 90.0, "high": high}
    made = profiles.objects(profile)
    assert "95 % interval, so much or that factor more or fewer" in made.note
    assert any("±6.0 %" in told for told in accesses(made).values())
    assert any("~12x" in told for told in accesses(made).values())


@pytest.mark.parametrize("source", ["sampled", "counted"])
def test_a_count_that_may_be_anything_is_unknown(source: str) -> None:
    profile = Profile.load("mg-e")
    profile.data["objects"][0]["accesses"] = {"count": 44.0, "low": 0.0, "high": 14_549_128.0, "source": source}
    made = profiles.objects(profile)
    assert accesses(made)[profile.data["objects"][0]["name"]] == "unknown, at most 1.5e+07"
    assert "unknown where it is 1000 or more" in made.note


def test_the_table_writes_few_accesses_plainly() -> None:
    profile = Profile.load("mg-e")
    name = profile.objects[0]["name"]
    for phase in profile.data["phases"]:
        for access in phase["accesses"]:
            if access["object"] == name:
                access["reads"], access["writes"] = 0.0, 0.0
    profile.data["phases"][0]["accesses"][0].update(object=name, reads=8.002)
    assert accesses(profiles.objects(profile))[name] == "8"
