"""`tierloom report`: whatever a verb wrote is shown, and the page stands alone."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from support import Tierloom

from tierloom import Machine, Profile
from tierloom.errors import RequestError
from tierloom.report.pages import kinds, reading, writing
from tierloom.report.pages.parts import Chart, Drawing

pytestmark = pytest.mark.xdist_group("report")

MOST_BYTES = 5_000_000


def specifications(page: str) -> list[dict]:
    found = re.findall(r'<script type="application/json">(.*?)</script>', page, re.DOTALL)
    return [json.loads(text) for text in found]


def values(spec: object) -> list[list]:
    """Every list of values in a specification."""
    if isinstance(spec, dict):
        here = [spec["values"]] if isinstance(spec.get("values"), list) and spec.get("name") == "table" else []
        return here + [found for part in spec.values() for found in values(part)]
    return [found for part in spec for found in values(part)] if isinstance(spec, list) else []


def test_every_result_is_known_for_what_it_is(results: Path) -> None:
    sources = reading.read([str(results)])
    known = {Path(file.name).stem for file in results.glob("*.json")} | {"profile", "plan"}
    assert {source.kind for source in sources} == known
    assert set(kinds.BUILDERS) <= known | {"run", "study"}


def test_machines_and_profiles_come_first(results: Path) -> None:
    assert [source.kind for source in reading.read([str(results)])][:2] == ["machine", "profile"]


def test_every_chart_has_values_and_its_data_as_a_table(results: Path) -> None:
    parts = [part for section in kinds.sections(reading.read([str(results)])) for part in section.charts]
    assert len(parts) > 30
    for part in parts:
        assert part.table.rows, part.title
        assert part.table.columns, part.title
        keys = {column.key for column in part.table.columns}
        assert any(keys & row.keys() for row in part.table.rows), part.title
        assert isinstance(part, Drawing) or part.data, part.title


def test_the_table_of_a_chart_says_what_is_drawn(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    drawn = [section["charts"] for section in json.loads(page.with_suffix(".json").read_text())["sections"]]
    assert len(re.findall(r"<figure ", text)) == len(re.findall(r'<details class="data"', text)) == sum(map(len, drawn))
    told = re.search(r'<table id="s\d+-mg-e-on-liu-a-1-data">.*?</table>', text, re.DOTALL)
    assert told
    assert "tierloom" in told[0]
    assert "first touch" not in told[0]


def test_all_specifications_compile(page: Path) -> None:
    """The compiler that the browser has, without a browser."""
    compiler = pytest.importorskip("vl_convert")
    specs = specifications(page.read_text(encoding="utf-8"))
    assert len(specs) > 30
    for spec in specs:
        assert values(spec), spec["description"]
        if "/vega/" not in spec.get("$schema", ""):
            compiled = compiler.vegalite_to_vega(spec, vl_version="6.4")
            assert compiled["marks"], spec["description"]


def test_a_page_stands_alone(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    body = text[: text.index("University of Washington")]
    assert len(text.encode()) < MOST_BYTES
    assert not re.search(r'(?:src|href)="(?!#|data:)|@import|url\((?!#)', body), "it points outside itself"
    assert "default-src 'none'" in body
    assert str(page.parent) not in text


def test_names_of_a_program_cannot_break_the_page(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert "</script><b>" not in text
    assert html.escape("</script><b>main") in text
    assert "prefetching &lt;is&gt; not modelled" in text


def test_the_same_results_give_the_same_bytes(results: Path) -> None:
    first, second = (writing.render(reading.read([str(results / "app.profile"), "liu-a"])) for _ in range(2))
    assert first == second


def test_drawings_are_well_formed_and_show_every_memory(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    drawn = re.findall(r'<svg class="(?:wide-shape|narrow)".*?</svg>', text, re.DOTALL)
    assert len(drawn) == 2
    for svg in drawn:
        words = " ".join(ET.fromstring(svg).itertext())
        assert all(memory in words for memory in ("ldram", "rdram", "cxl", "85 ns"))
    assert "205 GB/s" in drawn[0], "the link between the sockets"


def test_what_no_builder_knows_becomes_tables(tmp_path: Path, tierloom: Tierloom) -> None:
    file = tmp_path / "odd.json"
    file.write_text(json.dumps({"wall_s": 0.25, "inner": {"size_bytes": 2**20}, "rows": [{"a": 1, "b": {"c_ns": 5}}]}))
    out = tmp_path / "odd.html"
    told = tierloom("report", file, "-o", out, "--json")
    assert json.loads(told.stdout)["sections"] == [{"kind": "result", "title": "odd", "charts": [], "tables": 3}]
    text = out.read_text(encoding="utf-8")
    assert all(each in text for each in ("250 ms", "1MiB", '<th scope="col" class="n">b.c</th>'))


def test_documents_within_documents_and_lists_of_them_are_taken_apart(results: Path) -> None:
    machine, plan = (json.loads((results / f"{name}.json").read_text()) for name in ("machine", "comparison"))
    held = list(reading.from_data([{"machine": machine, "warnings": []}, plan], "mixed"))
    assert [source.kind for source in held] == ["machine", "comparison"]


def test_the_same_thing_named_twice_is_shown_once() -> None:
    assert [source.name for source in reading.read(["liu-a", "liu-b", "liu-a"])] == ["liu-a", "liu-b"]


def test_a_section_says_where_the_plan_differs_from_first_touch(results: Path) -> None:
    shown = kinds.sections(reading.read([str(results / "comparison.json")]))[0]
    moved = next(part for part in shown.charts if part.title == "What the plan moves")
    by_object: dict[str, float] = {}
    for row in moved.table.rows:
        by_object[row["object"]] = by_object.get(row["object"], 0.0) + row["amount"]
    assert all(abs(left) < 1e-6 for left in by_object.values()), "what enters a memory leaves another"


def test_the_flame_graph_adds_up(results: Path) -> None:
    shown = kinds.sections(reading.read([str(results / "app.profile")]))[0]
    flame = next(part for part in shown.charts if isinstance(part, Chart) and part.title == "Objects by call stack")
    for measure in ("waits", "bytes"):
        boxes = [row for row in flame.data if row["measure"] == measure]
        for depth in range(4):
            assert sum(row["share"] for row in boxes if row["depth"] == depth) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("no.json", None, "no such file"),
        ("half.json", '{"a": ', "half.json"),
        ("bare.json", "3", "holds no object"),
        ("bad.toml", "a = = 1", "bad.toml"),
        ("machine.toml", 'sockets = 1\nmemories = 2\npaths = 3\nname = "x"', "machine.toml"),
        ("liu-z", None, "did you mean liu-"),
    ],
)
def test_what_cannot_be_shown_is_refused_with_one_hint(
    folder: Path, tierloom: Tierloom, name: str, content: str | None, told: str
) -> None:
    if content is not None:
        (folder / name).write_text(content)
    result = tierloom("report", name)
    assert result.exit_code == 2
    assert told in result.stderr
    assert result.stderr.count("hint:") == 1
    assert not (folder / "report.html").exists()


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="nothing here can be shown"):
        reading.read([str(tmp_path)])


@pytest.mark.parametrize("name", [*Machine.names(), *Profile.names()])
def test_the_whole_catalog_can_be_shown(name: str) -> None:
    shown = kinds.sections(reading.read([name]))[0]
    assert shown.title == name
    assert len(shown.charts) >= 2


def test_nothing_of_ours_is_shown_as_plain_tables_for_want_of_something(results: Path) -> None:
    for section in kinds.sections(reading.read([str(results)])):
        assert "Shown as it is" not in [notes.title for notes in section.notes], section


def test_a_result_that_lacks_something_is_still_shown(tmp_path: Path) -> None:
    (tmp_path / "old.json").write_text(json.dumps({"policies": [{"policy": "a"}], "chosen": "a", "frontier": []}))
    shown = kinds.sections(reading.read([str(tmp_path / "old.json")]))[0]
    assert "looks like a comparison" in shown.notes[0].lines[0]
    assert [table.title for table in shown.tables] == ["Figures", "Policies"]


def test_a_huge_profile_stays_a_page() -> None:
    profile = json.loads(Profile.load("mg-e").text)
    item = profile["objects"][0]
    stack = [{"module": "app", "offset": depth, "function": "f" * 300} for depth in range(30)]
    profile["objects"] += [{**item, "name": f"o{index}", "site": {"stack": stack}} for index in range(4000)]
    text = writing.render([reading.of_profile(Profile(json.dumps(profile)))])
    assert len(text.encode()) < MOST_BYTES
    assert "more rows are left out" in text


STUDY = """
title = "How far?"
verb = "predict"
[axes]
threads = [1, 2]
"place.*.cxl" = [0.0, 0.5]
"""


def test_points_of_a_sweep_can_be_looked_at_from_all_sides(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    points = [
        {
            "machine": "liu-a",
            "threads": threads,
            "place.*.cxl": share,
            "time_s": threads + share,
            "state": "done" if share < 1 else "refused",
            "key": f"{threads}{share}",
        }
        for threads in (1, 2)
        for share in (0.0, 0.5, 1.0)
    ]
    folder = tmp_path / "far.sweep"
    folder.mkdir()
    (folder / "study.toml").write_text(STUDY)
    table = arrow.Table.from_pylist(points).replace_schema_metadata({"study": STUDY})
    parquet.write_table(table, folder / "results.parquet")
    (source,) = reading.read([str(folder)])
    shown = kinds.sections([source])[0]
    assert (shown.title, shown.about) == ("far", "How far?")
    (chart,) = shown.charts
    assert isinstance(chart, Chart)
    assert len(chart.data) == 4, "points with a result"
    chosen = {each["name"]: each["value"] for each in chart.spec["params"]}
    assert chosen == {"along": "threads", "up": "time_s", "colour": "place.*.cxl"}
    assert len(shown.tables[0].rows) == 6


def test_what_only_looks_like_a_sweep_is_refused(folder: Path, tierloom: Tierloom) -> None:
    pytest.importorskip("pyarrow")
    (folder / "results.parquet").write_text("no")
    result = tierloom("report", "results.parquet")
    assert result.exit_code == 2
    assert result.stderr.count("hint:") == 1
