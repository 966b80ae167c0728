"""Python as people type it in a notebook: names in, tables out."""

from __future__ import annotations

import html.parser
import json
import sys
from pathlib import Path

import pandas as pd
import polars as pl
import pytest

import tierloom
from tierloom import notebook_tables, offload
from tierloom.errors import MachineError, MissingPackageError, RequestError, WorkloadError
from tierloom.sweeps import Study, sweep

MACHINE, PROFILE = tierloom.machine("liu-a"), tierloom.profile("mg-e")
POLICIES = ["local", "interleave:ldram+cxl"]
STUDY = (
    'version = 1\nverb = "predict"\n[parameters]\nprofile = "mg-e"\nmachine = "liu-a"\n'
    '[axes]\nthreads = [8, 16]\n"place.u.cxl" = { from = 0.0, to = 1.0, steps = 30 }\n'
)


@pytest.fixture(scope="module")
def nouns(tmp_path_factory: pytest.TempPathFactory) -> dict[str, notebook_tables.Tabular]:
    answer = tierloom.plan(PROFILE, MACHINE, threads=32, policies=POLICIES)
    return {
        "machine": MACHINE,
        "profile": PROFILE,
        "plan": answer.plan(),
        "comparison": answer,
        "prediction": tierloom.predict("mg-e", "liu-a", {"*.cxl": 0.2}),
        "simulation": tierloom.simulate(
            tierloom.Workload.synthetic("zipf", size="64MiB", seconds=1), MACHINE, fast_memory="32MiB"
        ),
        "serving": offload.infer("opt-66b", "a10", "liu-a", throughput=True, compare=()),
        "training": offload.train("gpt2-8b", "a10", "liu-a"),
        "sweep": sweep(Study.parse(STUDY), tmp_path_factory.mktemp("sweep"), workers=0),
    }


KINDS = ["machine", "profile", "plan", "comparison", "prediction", "simulation", "serving", "training", "sweep"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_row_has_the_same_columns_and_both_frames_have_them_all(
    kind: str, nouns: dict[str, notebook_tables.Tabular]
) -> None:
    rows = nouns[kind].rows()
    assert rows
    assert {tuple(row) for row in rows} == {tuple(rows[0])}
    polars, pandas = nouns[kind].to_polars(), nouns[kind].to_pandas()
    assert isinstance(polars, pl.DataFrame)
    assert isinstance(pandas, pd.DataFrame)
    assert polars.to_dicts() == rows
    assert list(pandas.columns) == list(rows[0])
    assert len(pandas) == len(rows)


class Shown(html.parser.HTMLParser):
    """What stands in the cells of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.cells: dict[str, list[str]] = {"th": [], "caption": [], "td": [], "p": []}
        self.feed(text)
        assert not self.open, "every tag is closed"

    def handle_starttag(self, tag: str, attrs: object) -> None:
        assert tag not in {"script", "b"}, attrs
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.cells.get(self.open[-1], []).append(data)


@pytest.mark.parametrize("kind", KINDS)
def test_a_notebook_shows_the_columns_under_what_it_is(kind: str, nouns: dict[str, notebook_tables.Tabular]) -> None:
    shown = Shown(nouns[kind]._repr_html_()).cells
    assert shown["th"] == [column.heading for column in nouns[kind].columns if column.rank != "frame"]
    assert shown["caption"] == [repr(nouns[kind])]
    assert len(repr(nouns[kind])) < 100, "a line"


def test_a_long_table_shows_its_beginning_and_says_how_much_more_there_is(
    nouns: dict[str, notebook_tables.Tabular],
) -> None:
    shown = nouns["sweep"]._repr_html_()
    assert shown.count("<tr>") == 1 + notebook_tables.SHOWN
    assert "and 20 more" in shown


def test_names_of_a_program_are_text_and_no_markup() -> None:
    data = json.loads(PROFILE.text)
    data["objects"][0]["name"] = "</table><script>b"
    data["phases"] = []
    profile = tierloom.Profile(json.dumps(data))
    assert "</table><script>b" in Shown(profile._repr_html_()).cells["td"]


@pytest.mark.parametrize("name", ["polars", "pandas"])
def test_a_package_that_is_missing_is_named_with_how_to_get_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingPackageError, match=rf"{name} is not installed\nhint: pip install {name}, or .*frames"):
        getattr(MACHINE, f"to_{name}")()


def test_names_and_nouns_and_files_are_answered_alike(folder: Path) -> None:
    MACHINE.save(folder / "here.toml")
    by_noun = tierloom.plan(PROFILE, MACHINE, threads=8, policies=POLICIES)
    by_name = tierloom.plan("mg-e", "here.toml", threads=8, policies=POLICIES)
    assert by_name.data == by_noun.data


def test_a_simulation_takes_names_of_workloads_and_of_profiles() -> None:
    by_name = tierloom.simulate("ft-d", "liu-a", "none", threads=32)
    assert by_name.data == tierloom.simulate(tierloom.profile("ft-d"), MACHINE, "none", threads=32).data
    assert tierloom.simulate("silo", "liu-a", "none").workload == "silo"
    with pytest.raises(WorkloadError, match="did you mean silo"):
        tierloom.simulate("sillo", "liu-a")


def test_a_policy_its_shares_and_its_rows_are_the_same_placement() -> None:
    comparison = tierloom.plan("mg-e", "liu-a", threads=32, policies=POLICIES)
    rows = comparison.policy("interleave:ldram+cxl")["fractions"]
    by_rows = tierloom.predict("mg-e", "liu-a", rows, threads=32)
    by_name = tierloom.predict("mg-e", "liu-a", "interleave:ldram+cxl", threads=32)
    by_share = tierloom.predict("mg-e", "liu-a", {"*.cxl": 0.5}, rest="ldram", threads=32)
    assert by_name.time_s == pytest.approx(by_rows.time_s, rel=1e-9)
    assert by_share.time_s == pytest.approx(by_rows.time_s, rel=1e-3)
    assert by_rows.range_s[0] <= by_rows.time_s <= by_rows.range_s[1]


def test_a_name_that_is_not_there_is_answered_with_those_that_are() -> None:
    with pytest.raises(MachineError, match="did you mean liu-a"):
        tierloom.plan("mg-e", "liu-aa")
    with pytest.raises(RequestError, match=r"place\.w\.cxl: there is no `w`\nhint: use one of: \*, u, "):
        tierloom.predict("mg-e", "liu-a", {"w.cxl": 0.5})
    with pytest.raises(RequestError):
        tierloom.predict("mg-e", "liu-a", "interleave:hbm")
