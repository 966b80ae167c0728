"""Tables in a terminal of any width: no line is too long, no word or number is broken, what is left out is said."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, get_args

import click
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_samples import RUN, VALIDATED
from rich.console import Console
from support import ROOT, Tierloom

import tierloom as package
from tierloom import Profile, catalog, doctor, validation
from tierloom.columns import Column, Rank
from tierloom.commands import main, say
from tierloom.pmem import Pool
from tierloom.report.table_layout.table import Table
from tierloom.report.tables import doctor as doctor_table
from tierloom.report.tables import machines, profiles, runs, validations

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


NO_TABLES = {
    *("apply", "run", "doctor", "validate", "pmem stream"),  # made up below
    *("profile", "analyse"),  # objects and phases of every profile, below
    *("capacity measure duckdb", "capacity measure records", "capacity measure redis", "capacity measure spark"),
    *("machine export", "machine import", "machine measure"),  # a machine, as `machine show`
    *("lab up", "lab down", "lab run", "lab ssh", "lab image", "lab status", "demo", "report", "trace import"),
    *("recording pack", "pmem check", "pmem create", "pmem repair"),
}
"""Verbs that are not asked here: they print no tables, or those that a test here makes for them."""


def verbs(command: click.Command, *words: str) -> Iterator[str]:
    """All that can be typed, with the names of its groups."""
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from verbs(inner, *words, name)
    else:
        yield " ".join(words)


def test_every_verb_with_a_table_is_asked() -> None:
    asked = {verb for verb in verbs(main) for words in ASKED if " ".join(words).startswith(verb)}
    assert {*verbs(main)} - asked == NO_TABLES


POOL = "a.pool"
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
    ("machine", "new", "64 cores, dram 512GiB 100ns 300GB/s, cxl 1TiB 250ns 60GB/s", "--name", "planned"),
    ("capacity", "list"),
    ("capacity", "plan", "duckdb-tpch", "--dram", "256MiB,512MiB,1GiB", "--cxl", "0B,512MiB"),
    (
        *("capacity", "fleet", "--data", "40TiB", "--seconds", "120", "--server", "9000"),
        *("--tier", "dram:90:4:1TiB", "--tier", "cxl:45:3:1TiB", "--tier", "ssd:6:0.1:30TiB"),
    ),
    ("capacity", "shape", "--vcpus", "192", "--dram", "576GiB", "--per-vcpu", "4GiB", "--discount", "20%"),
    ("sweep", "cxl-share", "--workers", "0"),
    ("recording", "show", str(ROOT / "tests/recordings/kept/adi-O2/recording")),
    ("pmem", "show", POOL),
]


@pytest.fixture
def pool(folder: Path, tierloom: Tierloom) -> None:
    """A pool with arrays whose names are long."""
    assert tierloom("pmem", "create", POOL, "1MiB").exit_code == 0
    with Pool.open(folder / POOL) as opened:
        opened.put("boundary conditions of the outer domain", np.ones((3, 4)))
        opened.checkpoint("solver", {"u": np.zeros(10)})


@pytest.mark.usefixtures("pool")
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


LONG = "make_a_rather_long_solver_field_name@solver.cpp:17"
AT = {"rdram": 0, "ldram": 1, "cxl": 2}


def are_readable(tables: Iterable[object]) -> None:
    for made in tables:
        for width in WIDTHS:
            is_readable(drawn(made, width), drawn(made, VAST), width)


def test_tables_of_a_run_under_a_plan_are_readable_at_any_width() -> None:
    plan = package.plan("mg-e", "liu-a", threads=32).plan()
    rules = [
        {**RUN["rules"][0], "object": LONG, "problems": ["2 pages could not be moved: they are locked"]},
        *RUN["rules"],
    ]
    memories = [{"memory": name, "node": node, "kind": "dram", "because": "you said so"} for name, node in AT.items()]
    phase = {
        "name": "phase 2",
        "start_s": 1.5,
        "gain_s": 0.75,
        "expected_s": 0.5,
        "moved_bytes": 2**30,
        "took_s": 0.25,
        "skipped": "moving would take longer than the phase is predicted to gain",
    }
    told: Any = {**RUN, "rules": rules, "memories": memories, "phases": [phase]}
    are_readable(runs.outcomes(plan, told))
    applied = {"object": LONG, "objects": 2, "present_bytes": 2**31, "moved_bytes": 2**30, "problems": ["3 are busy"]}
    done: Any = {"pid": 4711, "took_s": 0.5, "memories": memories, "rules": [applied]}
    are_readable([runs.applied(done)])


def test_tables_of_a_validation_are_readable_at_any_width() -> None:
    rows: list[Any] = [
        {**VALIDATED, "command": ["./solver", "--cells=1000000", "--steps=250"], "placement": "weighted:ldram+cxl"},
        {**VALIDATED, "neighbours_gb_s": 12.5, "told": 4},
        {**VALIDATED, "ablated": LONG, "repeat": None},
        VALIDATED,
    ]
    data: Any = {"machine": "a-machine-with-a-name", "runs": 3, "rows": rows, "failures": []}
    are_readable(validations.tables(validation.Validation({**data, "summary": validation.summary(rows)})))


@pytest.mark.parametrize("verdict", ["works", "limited", "missing"])
def test_the_table_of_a_checkup_is_readable_at_any_width(verdict: Any) -> None:
    told = "kernel 6.1.0-31-amd64 lets perf_event_open sample this user's own programs: perf_event_paranoid is 2"
    remedy = "sysctl kernel.perf_event_paranoid=1, or run as root; docs/setup.md says what else needs which rights"
    found = [
        doctor.Finding(check.name, check.serves, verdict, told, remedy, needed=check.needed) for check in doctor.CHECKS
    ]
    are_readable([doctor_table.findings(found)])


def test_the_tables_of_pmem_stream_are_readable_at_any_width(
    tierloom: Tierloom, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts: list[Any] = []
    with monkeypatch.context() as caught:
        caught.setattr(say, "show", lambda *shown: parts.extend(shown))
        asked = ("pmem", "stream", "--group", "1.a", "--pool", "/dev/shm", "--size", "4MiB")  # noqa: S108 (its place)
        assert tierloom(*asked).exit_code == 0
    assert parts
    are_readable(parts)


def test_a_memory_and_its_size_stay_on_one_line() -> None:
    shown = drawn(machines.machine_list([package.Machine.load("liu-a")]), 60)
    assert all(f"{each}GiB" in shown for each in ("rdram 768", "ldram 768", "cxl 128")), shown
