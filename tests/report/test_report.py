"""`tierloom report`: whatever a verb wrote is shown, and the page stands alone."""

from __future__ import annotations

import base64
import csv
import gzip
import html
import io
import json
import re
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from support import Tierloom

from tierloom import Machine, Profile
from tierloom import plan as plan_of
from tierloom.errors import RequestError
from tierloom.report.pages import builders, flame_graph, html_file, simulation, sources
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
    read = sources.read([str(results)])
    known = {Path(file.name).stem for file in results.glob("*.json")} | {"profile", "plan", "study"}
    assert {source.kind for source in read} == known - {"anything"} | {"offload-catalog"}
    assert set(builders.BUILDERS) <= known


def test_machines_and_profiles_come_first(results: Path) -> None:
    assert [source.kind for source in sources.read([str(results)])][:2] == ["machine", "profile"]


def test_no_axis_counts_in_thousandths_of_its_unit(results: Path) -> None:
    """The SI format alone writes 0.8 GB/s as 800m."""
    parts = [part for section in builders.sections(sources.read([str(results)])) for part in section.charts]
    axes = [axis for part in parts if isinstance(part, Chart) for axis in found_axes(part.spec)]
    assert len(axes) > 10
    assert not [axis for axis in axes if str(axis.get("format", "")).endswith("s")]
    si = [axis["labelExpr"] for axis in axes if "~s" in axis.get("labelExpr", "")]
    assert si
    assert all(text.startswith("abs(datum.value) < 1 ? format(datum.value, '~g')") for text in si)


def test_no_tooltip_gives_a_measure_in_thousandths(results: Path) -> None:
    """As axes: only what is counted, which is whole, is written in thousands."""
    parts = [part for section in builders.sections(sources.read([str(results)])) for part in section.charts]
    lines = {line.title: line for line in simulation.LINES}
    by_thousands = [name for name, line in lines.items() if line.number.endswith("s")]
    assert by_thousands == ["Hint faults", "Pages promoted", "Pages demoted"]
    told = [part for part in parts if isinstance(part, Chart) and part.title in lines]
    assert told
    for part in told:
        formats = {tip["format"] for tip in found_tips(part.spec) if tip["field"] == "value"}
        assert formats <= {lines[part.title].number, ".1%"}, part.title


def found_tips(spec: object) -> list[dict]:
    """Every line of a tooltip."""
    parts = spec.values() if isinstance(spec, dict) else spec if isinstance(spec, list) else ()
    here = spec["tooltip"] if isinstance(spec, dict) and isinstance(spec.get("tooltip"), list) else []
    return here + [tip for part in parts for tip in found_tips(part)]


def found_axes(spec: object) -> list[dict]:
    """Every axis of a specification that says how it looks."""
    parts = spec.values() if isinstance(spec, dict) else spec if isinstance(spec, list) else ()
    here = [spec["axis"]] if isinstance(spec, dict) and isinstance(spec.get("axis"), dict) else []
    return here + [axis for part in parts for axis in found_axes(part)]


def test_every_chart_has_values_and_its_data_as_a_table(results: Path) -> None:
    parts = [part for section in builders.sections(sources.read([str(results)])) for part in section.charts]
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
    first, second = (html_file.render(sources.read([str(results / "app.profile"), "liu-a"])) for _ in range(2))
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
    held = list(sources.from_data([{"machine": machine, "warnings": []}, plan], "mixed"))
    assert [source.kind for source in held] == ["machine", "comparison"]


def test_the_same_thing_named_twice_is_shown_once() -> None:
    assert [source.name for source in sources.read(["liu-a", "liu-b", "liu-a"])] == ["liu-a", "liu-b"]


def test_a_section_says_where_the_plan_differs_from_first_touch(results: Path) -> None:
    shown = builders.sections(sources.read([str(results / "comparison.json")]))[0]
    moved = next(part for part in shown.charts if part.title == "What the plan moves")
    by_object: dict[str, float] = {}
    for row in moved.table.rows:
        by_object[row["object"]] = by_object.get(row["object"], 0.0) + row["amount"]
    assert all(abs(left) < 1e-6 for left in by_object.values()), "what enters a memory leaves another"


def test_the_flame_graph_adds_up(results: Path) -> None:
    shown = builders.sections(sources.read([str(results / "app.profile")]))[0]
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
        ("empty.toml", "", "empty.toml: nothing is in it"),
        ("bad.toml", "a = = 1", "bad.toml"),
        (
            "mix.c",
            "int main(void) { return 0; }",
            "mix.c: this is no machine, profile or plan, and nothing that a verb",
        ),
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
        sources.read([str(tmp_path)])


@pytest.mark.parametrize("name", [*Machine.names(), *Profile.names()])
def test_the_whole_catalog_can_be_shown(name: str) -> None:
    shown = builders.sections(sources.read([name]))[0]
    assert shown.title == name
    assert len(shown.charts) >= 2


def test_nothing_of_ours_is_shown_as_plain_tables_for_want_of_something(results: Path) -> None:
    for section in builders.sections(sources.read([str(results)])):
        assert "Shown as it is" not in [notes.title for notes in section.notes], section


def test_a_result_that_lacks_something_is_still_shown(tmp_path: Path, tierloom: Tierloom) -> None:
    (tmp_path / "old.json").write_text(json.dumps({"policies": [{"policy": "a"}], "chosen": "a", "frontier": []}))
    shown = builders.sections(sources.read([str(tmp_path / "old.json")]))[0]
    assert "looks like a comparison" in shown.notes[0].lines[0]
    assert [table.title for table in shown.tables] == ["Figures", "Policies"]
    told = tierloom("report", tmp_path / "old.json", "-o", tmp_path / "old.html")
    assert told.exit_code == 0
    assert "warning: old: It looks like a comparison but is not all of one" in " ".join(told.stderr.split())


def test_a_fault_in_a_builder_of_ours_is_not_taken_for_the_file_s(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(source: sources.Source, _: sources.Shelf) -> None:
        raise KeyError(source.name)

    monkeypatch.setitem(builders.BUILDERS, "machine", broken)
    with pytest.raises(KeyError, match="liu-a"):
        builders.sections(sources.read(["liu-a"]))


def test_a_run_says_where_its_pages_were(results: Path, tmp_path: Path, tierloom: Tierloom) -> None:
    [shown] = builders.sections(sources.read([str(results / "run.json")]))
    assert (shown.kind, shown.title) == ("run", "run")
    facts = {fact.label: fact.value for fact in shown.facts}
    assert facts == {"run time": "2.50 s", "rules in force": "1 of 2", "pages elsewhere": "25 %", "exit code": "3"}
    [chart] = shown.charts
    rows = [(row["object"], row["node"], row["amount"]) for row in chart.table.rows]
    assert rows == [("u", "node 0", 3.0), ("u", "node 1", 1.0)]
    rules, counters = shown.tables
    assert [row["object"] for row in rules.rows] == ["u", "never"]
    assert rules.rows[0]["asked"] == "node 0 50 %, node 1 50 %"
    assert [row["outcome"] for row in rules.rows] == ["held for 2 ranges by stripes", "never asked for"]
    assert counters.rows == [{"counter": "pgmigrate_success", "by": 12}]
    assert [note.lines for note in shown.notes] == [["The run was short."]]
    told = tierloom("report", results / "run.json", "-o", tmp_path / "ran.html")
    assert (told.exit_code, "warning" in told.stderr) == (0, False)
    page = (tmp_path / "ran.html").read_text(encoding="utf-8")
    assert all(each in page for each in ("held for 2 ranges by stripes", ">25 %<", "Where the pages were"))


def test_many_objects_of_few_samples_each_are_no_map_of_pages(tmp_path: Path) -> None:
    """None of them has a hundredth of the samples, so that no object is left to draw."""
    columns = [("time_ns", "<u8"), ("offset", "<u8"), ("thread", "<u4"), ("object", "<i4"), ("access", "|u1")]
    samples = np.zeros(1000, dtype=columns)
    samples["time_ns"], samples["object"], samples["access"] = np.arange(1000) * 10**6, np.arange(1000), 1
    document = json.loads(Profile.load("mg-e").text)
    document["objects"] += [{**document["objects"][0], "name": f"o{index}"} for index in range(1000)]
    profile = Profile(json.dumps(document))
    (tmp_path / "samples.npy").touch()
    np.save(tmp_path / "samples.npy", samples)
    profile.folder = tmp_path
    section = builders.sections([sources.of_profile(profile)])[0]
    assert "Shown as it is" not in [notes.title for notes in section.notes]
    titles = [chart.title for chart in section.charts]
    assert "Objects by call stack" in titles
    assert "Pages over time" not in titles


def test_a_long_table_is_cut_and_brought_along_whole() -> None:
    document = json.loads(Profile.load("mg-e").text)
    document["objects"] += [{**document["objects"][0], "name": f"o{index}"} for index in range(1000)]
    profile = Profile(json.dumps(document))
    text = html_file.render([sources.of_profile(profile)])
    files = dict(re.findall(r'download="([^"]*)" href="data:application/gzip;base64,([^"]*)"', text))
    every = next(address for name, address in files.items() if name.endswith("-table-1.csv.gz"))
    rows = list(csv.DictReader(io.StringIO(gzip.decompress(base64.b64decode(every)).decode())))
    assert {row["object"] for row in rows} == {item["name"] for item in profile.objects}
    about = builders.sections([sources.of_profile(profile)])[0].charts[0].about
    assert f"the other {len(profile.objects) - flame_graph.MOST_OBJECTS} hold" in about


def test_a_huge_profile_stays_a_page() -> None:
    profile = json.loads(Profile.load("mg-e").text)
    item = profile["objects"][0]
    stack = [{"module": "app", "offset": depth, "function": "f" * 300} for depth in range(30)]
    profile["objects"] += [{**item, "name": f"o{index}", "site": {"stack": stack}} for index in range(4000)]
    text = html_file.render([sources.of_profile(Profile(json.dumps(profile)))])
    assert len(text.encode()) < MOST_BYTES
    assert "more rows are left out" in text


MOST_BYTES_OF_MANY = 3_000_000


def many_objects(folder: Path) -> list[str]:
    """A profile of ten thousand objects with long names, and what asks for its plan's page."""
    many = 10_000
    profile = json.loads(Profile.load("cg-e").text)
    item, (access, *_) = profile["objects"][0], profile["phases"][0]["accesses"]
    chance = np.random.default_rng(1)
    sizes, waits = chance.lognormal(14, 2, many), chance.pareto(1.1, many)
    waits *= 0.9 / waits.sum()
    profile["objects"], profile["phases"][0]["accesses"] = [], []
    for index, (size, wait) in enumerate(zip(sizes, waits, strict=True)):
        name = f"make_a_rather_long_solver_field_name_{index}@solver.cpp:{index}"
        stack = [{"module": "app", "offset": index, "function": f"field_{index}(Mesh const&)"}, *DEEP[index % 50]]
        stall = {"share": wait, "low": max(wait - 0.002, 0), "high": wait + 0.002}
        profile["objects"].append(
            {**item, "name": name, "site": {"stack": stack}, "size_bytes": int(size) + 4096, "stall": stall}
        )
        moved = {key: access[key] * wait for key in ("dram_read_bytes", "dram_write_bytes")}
        profile["phases"][0]["accesses"].append({**access, "object": name, **moved})
    Profile(json.dumps(profile)).save(folder / "many.profile", b"")
    asked = ["many.profile", "-m", "liu-a", "--nodes", "ldram,cxl", "--fast-memory", "50%", "--html", "many.html"]
    return ["plan", *asked]


def test_ten_thousand_objects_are_a_page_of_three_megabytes(folder: Path, tierloom: Tierloom) -> None:
    assert tierloom(*many_objects(folder)).exit_code == 0
    text = (folder / "many.html").read_text(encoding="utf-8")
    assert len(text.encode()) < MOST_BYTES_OF_MANY
    assert builders.AS_IT_IS not in text
    titles = [spec["description"].split(".")[0] for spec in specifications(text)]
    assert {"Which objects are in ldram", "Objects by call stack"} <= set(titles)


MOST_STARTS = 400
"""Starts of Python that the page may take: 5 s where Python starts in 0.0125."""


@pytest.mark.live(measures=True)
def test_ten_thousand_objects_are_drawn_in_seconds(
    folder: Path, executable: Path, record_property: Callable[[str, object], None]
) -> None:
    page_s = cpu_s(executable, *many_objects(folder))
    starts = page_s / min(cpu_s(sys.executable, "-c", "pass") for _ in range(5))
    record_property("page of 10,000 objects, CPU s", page_s)
    record_property("page of 10,000 objects, starts of Python", starts)
    assert starts < MOST_STARTS


def cpu_s(*command: str | Path) -> float:
    """What a command takes of the processors."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


DEEP = [[{"module": "app", "offset": at, "function": f"group_{at}"}] for at in range(50)]
"""Callers of the functions that allocate."""


def charts_of(*data: dict, **nouns: Profile) -> dict[str, Chart]:
    """Charts by title, of results beside the profiles that they are about."""
    made = [*(source for each in data for source in sources.from_data(each, "a"))]
    made += [sources.of_profile(profile) for profile in nouns.values()]
    parts = (part for section in builders.sections(made) for part in section.charts)
    return {part.title: part for part in parts if isinstance(part, Chart)}


def test_the_slider_shows_the_best_placement_for_its_amount(results: Path) -> None:
    document = json.loads((results / "comparison.json").read_text())
    (chart,) = [part for title, part in charts_of(document).items() if title.startswith("Which objects are in")]
    objects = [item["name"] for item in Profile.load("mg-e").objects]
    points = document["frontier"]
    assert [len(row["fast"]) for row in chart.data] == [len(points)] * len(objects)
    for row in chart.data:
        at = objects.index(row["object"])
        assert row["fast"] == [round(point["fast_shares"][at], 2) for point in points]
        if row["half_from"] is not None:
            known = [point for point in points if point["fast_bytes"] / 2**30 >= row["half_from"]]
            assert all(point["fast_shares"][at] >= 0.5 for point in known)
    # What the shares say of an amount adds up to it.
    sizes = [item["size_bytes"] for item in Profile.load("mg-e").objects]
    for point in points:
        held = sum(size * share for size, share in zip(sizes, point["fast_shares"], strict=True))
        assert held == pytest.approx(point["fast_bytes"], abs=1e-4 * sum(sizes))


def test_an_answer_of_before_has_no_such_slider(results: Path) -> None:
    document = json.loads((results / "comparison.json").read_text())
    for point in document["frontier"]:
        del point["fast_shares"]
    for policy in document["policies"]:
        policy.get("prediction", {}).pop("phases", None)
    titles = list(charts_of(document))
    assert "Time by policy" in titles
    assert not [title for title in titles if title.startswith("Which objects are in")]


def test_memory_over_the_run_comes_and_goes_with_its_objects() -> None:
    document = json.loads(Profile.load("mg-e").text)
    first, second, *_ = document["objects"]
    first.update(first_s=0.0, first_touch_s=0.0, populated_s=10.0, last_s=40.0, size_bytes=8 << 30)
    second.update(first_s=20.0, first_touch_s=20.0, last_s=60.0, size_bytes=4 << 30)
    del document["objects"][2:]
    document["program"]["wall_s"] = 80.0
    document["phases"][0]["accesses"] = []
    (chart,) = [part for title, part in charts_of(x=Profile(json.dumps(document))).items() if "Memory over" in title]
    held: dict[float, float] = {}
    for row in chart.data:
        held[row["time_s"]] = held.get(row["time_s"], 0.0) + row["amount"]
    known = {0.0: 0.0, 10.0: 8.0, 20.0: 12.0, 40.0: 12.0, 60.0: 4.0, 80.0: 0.0}
    assert {at: held[at] for at in known} == pytest.approx(known)


def test_the_run_as_predicted_adds_up(results: Path) -> None:
    read = [source for source in sources.read([str(results / "app.profile")]) if isinstance(source.noun, Profile)]
    answer = plan_of(read[0].noun, "liu-a", nodes=["ldram", "cxl"], fast_memory="50%")
    told = answer.chosen["prediction"]
    (chart,) = [
        part
        for title, part in charts_of(answer.data | {"kind": "comparison", "version": 1}).items()
        if "as pred" in title
    ]
    assert max(row["end_s"] for row in chart.data) == pytest.approx(told["time_s"])
    for tier in told["tiers"]:
        moved = sum(
            row["gb_s"] * (row["end_s"] - row["start_s"]) for row in chart.data if row["memory"] == tier["memory"]
        )
        assert moved == pytest.approx(tier["gb_s"] * told["time_s"])


def test_a_difference_says_its_answer_first(results: Path) -> None:
    document = json.loads((results / "difference.json").read_text())
    document |= {"answer": ["B takes half as long."], "remarks": ["They ran on two machines."]}
    (section,) = builders.sections([*sources.from_data(document, "a")])
    assert section.about.startswith("B takes half as long. They ran on two machines. B against A.")
    del document["answer"], document["remarks"]
    (section,) = builders.sections([*sources.from_data(document, "a")])
    assert section.about.startswith("B against A."), "a file of before has none"


def test_two_runs_stand_side_by_side(results: Path) -> None:
    document = json.loads((results / "difference.json").read_text())
    chart = charts_of(document)["Side by side: waits, share"]
    assert [(row["side"], row["value"], row["low"], row["high"]) for row in chart.data] == [
        ("A", 0.5, 0.48, 0.52),
        ("B", 0.25, 0.23, 0.27),
    ]


def test_points_of_a_sweep_can_be_looked_at_from_all_sides(results: Path) -> None:
    (source,) = sources.read([str(results / "far.sweep")])
    shown = builders.sections([source])[0]
    assert (shown.title, shown.about) == ("far", "How far?")
    (chart,) = shown.charts
    assert isinstance(chart, Chart)
    assert len(chart.data) == 4, "points with a result"
    chosen = {each["name"]: each["value"] for each in chart.spec["params"]}
    assert chosen == {"along": "threads", "up": "time_s", "colour": "place.*.cxl"}
    titles = {name: chart.spec["encoding"][name]["axis"]["title"] for name in ("x", "y")}
    assert titles == {"x": {"signal": "along"}, "y": {"signal": "up"}}, "what the reader has chosen"
    assert len(shown.tables[0].rows) == 6


def test_what_only_looks_like_a_sweep_is_refused(folder: Path, tierloom: Tierloom) -> None:
    pytest.importorskip("pyarrow")
    (folder / "results.parquet").write_text("no")
    result = tierloom("report", "results.parquet")
    assert result.exit_code == 2
    assert result.stderr.count("hint:") == 1
