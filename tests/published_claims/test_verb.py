"""`tierloom reproduce` as people and programs call it."""

from __future__ import annotations

import json
from pathlib import Path

from support import Tierloom, words_of

from tierloom.published_claims import claims, reproduce
from tierloom.report.pages.claims import pictures
from tierloom.report.tables.claims import document

KEYS = {
    *("id", "study", "section", "place", "what", "kind", "printed", "read_off", "unit"),
    *("published", "ours", "band", "verdict", "cause", "why", "spot"),
}


def test_json_has_the_keys_that_are_promised(tierloom: Tierloom) -> None:
    answer = tierloom("reproduce", "--only", "micron24", "--only", "bytedance24.latency", "--workers", "1", "--json")
    assert answer.exit_code == 0
    rows = json.loads(answer.stdout)["claims"]
    assert all(row.keys() == KEYS for row in rows)
    assert {row["verdict"] for row in rows} == {"in band", "missed", "not modelled"}
    assert all(row["why"] for row in rows if row["verdict"] != "in band")
    gain = next(row for row in rows if row["id"] == "micron24.svm.over-768")
    assert gain["printed"] == "2.21x"
    assert gain["band"][0] < gain["ours"] < gain["band"][1]
    tally = json.loads(answer.stdout)["tally"]
    assert sum(sum(of_kind.values()) for of_kind in tally.values()) == len(rows)


def test_the_table_says_why_and_counts_numeric_predictions_apart(tierloom: Tierloom) -> None:
    text = " ".join(tierloom("reproduce", "--only", "micron24.cloverleaf", "--workers", "1").stdout.split())
    assert "missed: cloverleaf.nps4: Bound by DRAM bandwidth" in text
    assert "0 of 1 numeric predictions in band (0%)" in text
    assert "3 of 4 orderings" in text


def test_figures_with_known_points_are_drawn(tierloom: Tierloom, folder: Path) -> None:
    answer = tierloom("reproduce", "--only", "fridman23.group2a", "--workers", "1", "--plot", "drawn")
    assert answer.exit_code == 0
    (picture,) = (folder / "drawn").iterdir()
    assert picture.name == "fridman23.group2a.svg"
    assert {"published", "ours", "threads", "fridman23.group2a"} <= set(words_of(picture))


def test_points_of_a_curve_are_joined_in_order_and_the_axis_says_of_what() -> None:
    (picture,) = pictures(document(reproduce(claims(["fridman23.group2a"]), workers=1))["claims"])
    assert len(picture.charts) == 3
    for chart in picture.charts:
        line, *points = chart.spec["layer"]
        assert line["mark"]["type"] == "line", "a line of Vega-Lite goes along its axis, whatever the order of the rows"
        assert (line["encoding"]["x"]["type"], line["encoding"]["x"]["title"]) == ("quantitative", "threads")
        assert len(points) == len({row["by"] for row in chart.data}) == 2


def test_tables_go_between_the_marks_of_a_document(tierloom: Tierloom, folder: Path) -> None:
    page = folder / "page.md"
    page.write_text("before\n<!-- claims -->\nstale words\n<!-- end of claims -->\nafter\n")
    tierloom("reproduce", "--only", "micron24.cloverleaf", "--workers", "1", "--markdown", "page.md")
    text = page.read_text()
    assert text.startswith("before\n<!-- claims -->")
    assert text.endswith("<!-- end of claims -->\nafter\n")
    assert "stale words" not in text
    assert "| cloverleaf.nps4 | " in text


def test_an_unknown_claim_is_refused(tierloom: Tierloom) -> None:
    answer = tierloom("reproduce", "--only", "nature99")
    assert answer.exit_code == 2
    assert "--only nature99: no claim is called so" in answer.stderr
    assert "hint:" in answer.stderr
