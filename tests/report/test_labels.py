"""Labels of names: short, never two alike, and what a chart of any kind shows."""

from __future__ import annotations

import json
import re

from hypothesis import given
from hypothesis import strategies as st

import tierloom
from tierloom.report.labels import CUT, shortened
from tierloom.report.pages import builders, label_expressions, sources, vega
from tierloom.report.pages.parts import Chart
from tierloom.report.table_layout.table import Table

NAMES = st.lists(st.text("ab#…2", min_size=1, max_size=9) | st.text("ab#…2", min_size=20, max_size=60), max_size=9)


@given(NAMES, st.integers(3, 40))
def test_labels_fit_and_no_two_are_alike(names: list[str], letters: int) -> None:
    made = shortened(names, letters)
    assert set(made) == set(names)
    assert len(set(made.values())) == len(made)
    assert all(len(label) <= letters for label in made.values())
    assert all(made[name] == name for name in names if len(name) <= letters)


def test_both_ends_stay_and_so_does_what_tells_names_apart() -> None:
    names = [f"make_a_long_field_name_{number}_of_the_mesh@solver.cpp" for number in (7, 8, 12)]
    for letters in (label_expressions.NARROW, label_expressions.WIDE):
        for name, label in shortened(names, letters).items():
            head, *_, tail = parts = label.split(CUT)
            assert name.startswith(head)
            assert name.endswith(tail)
            assert re.fullmatch(".+".join(map(re.escape, parts)), name)
            assert name.split("_")[5] in label


def test_what_fits_is_not_touched_for_the_sake_of_another() -> None:
    long = "a" * 20
    assert shortened([long, "aaa…aaa"], 7) == {long: "aaa…a#2", "aaa…aaa": "aaa…aaa"}


def drawn(names: list[str], encoding: dict) -> dict:
    """The encoding of a chart of these names, as a page has it."""
    spec = {"data": {"name": "table"}, "mark": "bar", "encoding": encoding}
    return vega.filled(Chart("t", spec, Table([], [{"name": name, "n": 1} for name in names])))["encoding"]


def test_every_discrete_axis_and_legend_gets_its_labels() -> None:
    names = ["u", "x" * 30 + "1", "x" * 30 + "2"]
    told = {"field": "name", "type": "nominal"}
    x = {"field": "n", "type": "quantitative"}
    made = drawn(names, {"y": {**told, "axis": {"ticks": False}}, "color": told, "x": x})
    assert made["y"]["axis"]["ticks"] is False
    assert made["x"] == x
    for guide, channel in (("axis", "y"), ("legend", "color")):
        for letters in (label_expressions.NARROW, label_expressions.WIDE):
            labels = shortened(names, letters).values()
            assert all(label in made[channel][guide]["labelExpr"] for label in labels if label != "u")


def test_short_names_and_hidden_legends_are_left_alone() -> None:
    told = {"field": "name", "type": "nominal"}
    assert drawn(["ldram", "cxl"], {"y": told}) == {"y": told}
    assert drawn(["x" * 30], {"color": {**told, "legend": None}}) == {"color": {**told, "legend": None}}


def test_objects_of_one_beginning_can_be_told_apart_on_every_chart_of_a_profile() -> None:
    document = json.loads(tierloom.profile("mg-e").text)
    renamed = {}
    for at, item in enumerate(document["objects"]):
        renamed[item["name"]] = f"make_a_rather_long_solver_field_name_{at}_of_the_mesh@solver.cpp"
        item["name"] = renamed[item["name"]]
        item["stall"] = {"share": 0.1, "low": 0.05, "high": 0.15}
    for access in (access for phase in document["phases"] for access in phase["accesses"]):
        access["object"] = renamed[access["object"]]
    section = builders.sections([sources.of_profile(tierloom.Profile(json.dumps(document)))])[0]
    lite = [chart for chart in section.charts if isinstance(chart, Chart) and vega.is_lite(dict(chart.spec))]
    assert lite
    labels = shortened(renamed.values(), label_expressions.WIDE).values()
    for chart in lite:
        assert all(label in json.dumps(vega.filled(chart), ensure_ascii=False) for label in labels), chart.title
