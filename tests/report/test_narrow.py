"""Tables in a terminal of any width: no line is too long, no word or number is broken, what is left out is said."""

from __future__ import annotations

import io
import re
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from support import Tierloom

from tierloom import Profile, catalog
from tierloom.columns import Column, Rank
from tierloom.commands import say
from tierloom.report.tables import profiles
from tierloom.report.tables.layout import Table

WIDTHS = (60, 80, 100, 140)
VAST = 2000
"""Columns in which nothing is broken, cut or left out."""
PART = re.compile(r"(?:[^/:]|:(?=\d))*(?:/|:(?!\d))+(?:[^\w/:]+$)?|(?:[^/:]|:(?=\d))+")
"""What stays whole of a path, or of a qualified name."""
OWN = {
    "Left",
    "out",
    "at",
    "columns",
    "A",
    "wider",
    "terminal",
    "shows",
    "them",
    "and",
    "so",
    "does",
    "--json",
    *map(str, WIDTHS),
}
"""Words of the sentence on what was left out."""


def drawn(made: object, width: int) -> str:
    stream = io.StringIO()
    Console(file=stream, width=width, markup=False, emoji=False, color_system=None).print(made)
    return stream.getvalue()


def is_readable(shown: str, vast: str, width: int) -> None:
    """Every line fits, and every word is one of the words when there was room, or a part of a path or visibly cut."""
    assert max(map(len, shown.splitlines()), default=0) <= width
    words = {*vast.split(), *OWN, *(word.rstrip(",.:") for word in vast.split())}
    parts = {part for word in words if len(word) > 16 for part in PART.findall(word)}
    for word in shown.split():
        known = word in words or word.rstrip(",.:") in words or "…" in word or "─" in word
        assert known or all(part in parts for part in PART.findall(word)), word


WORDS = st.text("abcdef", min_size=1, max_size=9)
NUMBERS = st.one_of(
    st.integers(0, 10**9).map(str),
    st.floats(0, 1e12).map("{:.3g} s".format),
    st.tuples(st.floats(0, 100), st.floats(0, 100)).map("{0[0]:.1f}-{0[1]:.1f}".format),
)
NAMES = st.lists(WORDS, min_size=1, max_size=9).map("/".join) | st.text("ghijk", min_size=20, max_size=70)
SENTENCES = st.lists(WORDS | NUMBERS, max_size=40).map(" ".join)


@st.composite
def made_up(draw: st.DrawFn) -> Table:
    """A table of names, numbers and sentences."""
    columns = [Column("name", "name")]
    kinds = [NAMES | SENTENCES]
    for index in range(draw(st.integers(0, 12))):
        numeric = draw(st.booleans())
        heading = draw(st.lists(WORDS, min_size=1, max_size=3).map(" ".join))
        columns.append(
            Column(
                str(index),
                f"{heading} {index}",
                "number" if numeric else "text",
                draw(st.sampled_from([rank for rank in get_args(Rank) if rank not in {"page", "frame"}])),
            )
        )
        kinds.append(NUMBERS if numeric else NAMES | SENTENCES)
    rows = [
        {column.key: draw(kind) for column, kind in zip(columns, kinds, strict=True)}
        for _ in range(draw(st.integers(0, 4)))
    ]
    made = Table(columns, rows, draw(SENTENCES))
    made.add_reason("first", draw(SENTENCES))
    return made


@given(made_up(), st.sampled_from(WIDTHS))
def test_a_made_up_table_is_readable_at_any_width(made: Table, width: int) -> None:
    is_readable(drawn(made, width), drawn(made, VAST), width)


@given(made_up(), st.sampled_from(WIDTHS))
def test_a_column_that_stays_shows_every_number_whole(made: Table, width: int) -> None:
    shown = drawn(made, width)
    gone = shown.partition("Left out at")[2]
    for column in made.columns[1:]:
        if column.side == "right" and column.heading not in " ".join(gone.split()):
            assert [cell for row in made.rows if (cell := str(row[column.key])) not in shown] == [], shown


def test_the_least_important_columns_go_first_and_the_table_says_which() -> None:
    columns = [
        *(Column("a", "a"), Column("b", "b", "number", "extra"), Column("c", "c", "number")),
        *(Column("d", "d", "number", "key"), Column("e", "e", "number")),
    ]
    made = Table(columns, [dict.fromkeys("abcde", "1234567890")], None)
    lines = [drawn(made, width).splitlines() for width in (64, 63, 50, 37)]
    assert [shown[1].split() for shown in lines] == [
        ["a", "b", "c", "d", "e"],
        ["a", "c", "d", "e"],
        ["a", "c", "d"],
        ["a", "d"],
    ]
    assert "Left out at 63 columns: b." in drawn(made, 63)
    assert "Left out at 50 columns: b, e." in drawn(made, 50)


def test_where_the_important_columns_do_not_fit_every_row_is_a_block() -> None:
    columns = [
        *(Column("name", "name"), Column("one", "one", "number", "key")),
        *(Column("two", "two", "number", "key"), Column("empty", "empty")),
    ]
    made = Table(columns, [{"name": "first", "one": "1" * 30, "two": "2" * 30, "empty": ""}], "title")
    assert drawn(made, 60).split("\n") == [
        "title",
        "",
        "name: first",
        f"  one: {'1' * 30}",
        f"  two: {'2' * 30}",
        "",
        "",
    ]


def test_reasons_stand_below_and_equal_ones_once() -> None:
    names = ("bind:a", "bind:b")
    made = Table(
        [Column("policy", "policy"), Column("time_s", "time", "seconds")], [{"policy": name} for name in names]
    )
    for name in names:
        made.add_reason(name, "not possible: object `x` does not fit")
    assert "bind:a, bind:b: not possible: object `x` does not fit" in drawn(made, 60)


ASKED = [
    *(("machine", "show", name, "--sources") for name in catalog.machine_names()),
    ("machine", "list"),
    ("plan", "mg-e", "--machine", "liu-a", "--threads", "32", "--fast-memory", "64GiB"),
    ("plan", "xsbench-xl", "--machine", "liu-c", "--threads", "8"),
    ("offload", "list"),
    ("offload", "infer", "--model", "llama-3.1-70b", "--gpu", "a10", "--machine", "liu-a-llm", "--users", "4"),
    ("offload", "train", "--model", "gpt2-8b", "--gpu", "a10", "--machine", "liu-a-llm"),
    (
        "offload",
        "serve",
        "--model",
        "llama-3.1-70b",
        "--gpu",
        "h100",
        "--machine",
        "liu-a-llm",
        "--sessions",
        "40",
        "--context",
        "32768",
    ),
    ("offload", "cpu", "--model", "llama-7b", "--weight-bits", "4.5", "--machine", "bytedance-spr-a1000"),
    ("expand", "--workload", "vadd", "--media", "znand", "--config", "all", "--passes", "0.02"),
    ("expand", "calibrate", "--measured", "h200"),
    ("capacity", "published", "tpch-mssql", "spark-svm", "cost-model", "keydb", "spark-sql"),
    ("capacity", "fit", "duckdb-tpch"),
    ("capacity", "store", "--machine", "bytedance-spr-a1000"),
    ("capacity", "cost", "--dram", "10", "--cxl", "8", "--dram-to-cxl", "2", "--server-cost", "1.1"),
    (
        "simulate",
        "--workload",
        "silo",
        "--machine",
        "bytedance-spr-a1000",
        "--nodes",
        "ldram,cxl",
        "--fast-memory",
        "50%",
    ),
    ("diff", "bt-e", "sp-e"),
    ("reproduce", "--only", "fridman23", "--workers", "1"),
]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("asked", ASKED, ids=lambda asked: " ".join(asked[:3]))
def test_what_verbs_show_is_readable_at_any_width(
    tierloom: Tierloom,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    asked: tuple[str, ...],
) -> None:
    parts: list[Any] = []
    with monkeypatch.context() as caught:
        caught.setattr(say, "show", lambda *shown: parts.extend(shown))
        assert tierloom(*asked).exit_code == 0
    assert parts

    def shown(width: int) -> str:
        monkeypatch.setenv("COLUMNS", str(width))
        say.show(*parts)
        return capsys.readouterr().out

    vast = shown(VAST)
    for width in WIDTHS:
        is_readable(shown(width), vast, width)


@pytest.mark.parametrize("name", catalog.profile_names())
def test_tables_of_profiles_are_readable_at_any_width(name: str) -> None:
    profile = Profile.load(name)
    for made in (profiles.objects(profile), *profiles.phases(profile)):
        for width in WIDTHS:
            is_readable(drawn(made, width), drawn(made, VAST), width)
