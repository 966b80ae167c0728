"""The columns of answers are declared once: the page of the API, frames, notebooks and terminals say the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import column_reference
import pytest

import tierloom
from tierloom.report.table_layout.table import Table
from tierloom.report.tables import machines, offloads, plans, profiles

MACHINE, PROFILE = tierloom.machine("liu-a"), tierloom.profile("mg-e")


def test_the_page_is_made_from_the_columns() -> None:
    page = column_reference.PAGE.read_text(encoding="utf-8")
    assert page == column_reference.written(page), "python tools/column_reference.py"


def test_every_key_of_the_page_is_a_column_of_a_frame() -> None:
    answer = tierloom.plan(PROFILE, MACHINE, threads=32, policies=["local", "bind:cxl"])
    frames = {
        "tierloom.machine": MACHINE,
        "tierloom.profile": PROFILE,
        "tierloom.plan": answer,
        "tierloom.plan(…).plan": answer.plan(),
        "tierloom.predict": tierloom.predict(PROFILE, MACHINE, {"*.cxl": 0.2}),
        "tierloom.offload.infer": tierloom.offload.infer("opt-66b", "a10", "liu-a", throughput=True, compare=()),
        "tierloom.offload.train": tierloom.offload.train("gpt2-8b", "a10", "liu-a"),
    }
    assert frames.keys() == column_reference.TABLES.keys()
    for call, (_, columns) in column_reference.TABLES.items():
        named = {key for column in columns for key in (column.key, column.to) if key}
        kinds = {f"{key}.kind" for key in named}
        found = set(frames[call].rows()[0])
        assert named <= found <= named | kinds, call


def test_a_terminal_shows_the_rows_of_the_frame() -> None:
    answer = tierloom.plan(PROFILE, MACHINE, threads=32)
    shown = plans.policies(answer.data).plain_rows()
    assert sorted(shown, key=str) == sorted(answer.rows(), key=str)
    told = machines.paths(MACHINE).plain_rows()
    assert [{key: row[key] for key in told[at] if key in row} for at, row in enumerate(MACHINE.rows())] == [
        {key: value for key, value in row.items() if key != "curve"} for row in told
    ]
    every = profiles.every_object(PROFILE, profiles.traffic(PROFILE.data)).plain_rows()
    assert sorted(every, key=str) == sorted(PROFILE.rows(), key=str)


@pytest.mark.parametrize(("made", "answer"), [(offloads.places, "infer"), (offloads.training, "train")])
def test_tables_of_offloading_are_those_of_the_frame(made: Callable[[Any], Table], answer: str) -> None:
    asked = {"infer": ("opt-66b", "a10", "liu-a"), "train": ("gpt2-8b", "a10", "liu-a")}[answer]
    found = getattr(tierloom.offload, answer)(*asked)
    assert made(found.data).plain_rows() == found.rows()
