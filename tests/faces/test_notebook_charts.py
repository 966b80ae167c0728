"""Charts and progress in a notebook: whole documents of the report's specifications, a bar in a kernel only."""

from __future__ import annotations

import html
import json
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import tierloom
from tierloom import Chart, measurement, offload, progress_bar, validation
from tierloom.errors import RequestError
from tierloom.notebook_tables import Charted
from tierloom.report import notebook
from tierloom.report.pages import builders, html_file, parts, sources, vega
from tierloom.sweeps import Study, sweep

STUDY = (
    'version = 1\nverb = "predict"\n[parameters]\nprofile = "mg-e"\nmachine = "liu-a"\n'
    '[axes]\n"place.u.cxl" = { from = 0.0, to = 1.0, steps = 30 }\n'
)
POLICIES = ["local", "interleave:ldram+cxl", "tierloom"]


@pytest.fixture(scope="module")
def charted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Charted]:
    comparison = tierloom.plan("mg-e", "liu-a", threads=32, policies=POLICIES)
    return {
        "machine": tierloom.machine("liu-a"),
        "profile": tierloom.profile("mg-e"),
        "comparison": comparison,
        "plan": comparison.plan(),
        "simulation": tierloom.simulate("silo", "liu-a", "none"),
        "serving": offload.infer("opt-66b", "a10", "liu-a", throughput=True, compare=()),
        "training": offload.train("gpt2-8b", "a10", "liu-a"),
        "difference": tierloom.diff("mg-e", "cg-e"),
        "sweep": sweep(Study.parse(STUDY), tmp_path_factory.mktemp("sweep"), workers=0),
    }


KINDS = ["machine", "profile", "comparison", "plan", "simulation", "serving", "training", "difference", "sweep"]


def names_of_colours(part: object) -> list[str]:
    """Colours that only a page's style sheet knows."""
    return re.findall(r"var\(--[\w-]+\)|\"container\"|containerSize", json.dumps(part))


@pytest.mark.parametrize("kind", KINDS)
def test_every_chart_is_a_document_that_stands_alone(kind: str, charted: dict[str, Charted]) -> None:
    charts = charted[kind].charts()
    assert len(charts) > 0
    for chart in charts:
        lite = vega.is_lite(chart.spec)
        assert chart.spec["$schema"].startswith("https://vega.github.io/schema/vega")
        assert {"mark", "layer"} & chart.spec.keys() if lite else chart.spec["marks"]
        assert chart.spec["description"].startswith(chart.title)
        assert json.dumps(chart.spec, allow_nan=False).count('"values": [{') >= 1
        assert not names_of_colours(chart.spec), chart.title


@pytest.mark.parametrize("kind", KINDS)
def test_every_chart_is_drawn_by_the_compiler_of_the_page_and_by_the_oldest(
    kind: str, charted: dict[str, Charted]
) -> None:
    compiler = pytest.importorskip("vl_convert")
    for chart in charted[kind].charts():
        if vega.is_lite(chart.spec):
            drawn = [compiler.vegalite_to_svg(chart.spec, vl_version=version) for version in ("5.8", "6.4")]
        else:
            drawn = [compiler.vega_to_svg(chart.spec)]
        for svg in drawn:
            assert svg.startswith("<svg"), chart.title
            assert chart.title in html.unescape(svg) or not isinstance(chart.spec["title"]["text"], str)


@pytest.mark.parametrize("kind", KINDS)
def test_charts_are_those_of_the_page_with_its_rows_and_values(kind: str, charted: dict[str, Charted]) -> None:
    read = list(notebook._sources(charted[kind]))
    page = builders.section(read[0], sources.Shelf.of(read))
    shown = [part for part in page.charts if isinstance(part, parts.Chart)]
    charts = charted[kind].charts()
    assert charts.titles == [part.title for part in shown]
    written = html_file.html_of([page], "page")
    for chart, part in zip(charts, shown, strict=True):
        on_page = json.loads(html_file.spec(part))
        kept = ("mark", "layer", "encoding", "transform", "marks", "data")
        same = {key: value for key, value in on_page.items() if key in kept}
        assert {key: value for key, value in chart.spec.items() if key in kept} == vega.painted(same, vega.look())
        assert str(html_file.spec(part)) in written
        assert len(chart.rows()) == len(part.table.rows)
        assert {tuple(row) for row in chart.rows()} == {tuple(chart.rows()[0])}
        assert list(chart.to_pandas().columns) == list(chart.rows()[0])
        for column in part.table.columns:
            assert [row.get(column.key) for row in chart.rows()] == [
                column.plain(row)[column.key] for row in part.table.rows
            ]


def test_a_chart_is_found_by_its_title_and_place(charted: dict[str, Charted]) -> None:
    charts = charted["comparison"].charts()
    assert charts["Time by policy"] == charts[0]
    assert charts[:2].titles == charts.titles[:2]
    assert repr(charts[0]) == "<Chart Time by policy: 3 rows>"
    with pytest.raises(RequestError, match="Time by polcy: no chart here is called so\nhint: did you mean Time by pol"):
        charts["Time by polcy"]


def test_runs_in_a_list_stand_side_by_side() -> None:
    still, moved = (tierloom.simulate("silo", "liu-a", policy) for policy in ("none", "tiering"))
    assert {row["policy"] for row in tierloom.charts([still, moved])[0].rows()} == {"none", "tiering"}
    runs = [tierloom.expand("vadd", config=config, passes=0.001) for config in ("cxl", "uvm")]
    assert len(tierloom.charts(runs)["Time by configuration"].rows()) == 2
    assert tierloom.charts(runs[0]).titles == tierloom.charts(runs).titles


def test_documents_names_and_files_have_the_charts_of_the_object(charted: dict[str, Charted], folder: Path) -> None:
    machine = tierloom.machine("liu-a")
    machine.save(folder / "here.toml")
    titles = machine.charts().titles
    assert tierloom.charts("liu-a").titles == tierloom.charts(folder / "here.toml").titles == titles
    comparison = charted["comparison"]
    assert tierloom.charts(comparison.data).titles == comparison.charts().titles
    served = offload.serve("llama-3.1-70b", "h100", "liu-a", sessions=30, context=32768)
    assert len(tierloom.charts(served)) > 0


@pytest.mark.parametrize(
    "given", [3, {}, {"wall_s": 1.0}, [], None, "nothing.json", {"policies": [], "chosen": "x", "frontier": 1}]
)
def test_what_a_report_does_not_know_is_refused(given: object) -> None:
    with pytest.raises(RequestError, match="\nhint: "):
        tierloom.charts(given)


@pytest.mark.parametrize(("kind", "drawn"), [("comparison", notebook.LITE), ("profile", notebook.VEGA)])
def test_jupyter_gets_vega_first_and_a_picture_for_other_viewers(
    kind: str, drawn: str, charted: dict[str, Charted]
) -> None:
    pytest.importorskip("vl_convert")
    chart = charted[kind].charts()[0]
    bundle = chart._repr_mimebundle_()
    assert list(bundle) == [drawn, "image/svg+xml", "text/plain"]
    assert bundle[drawn] == chart.spec
    assert not hasattr(chart, "_repr_html_"), "JupyterLab prefers text/html to Vega"


def test_without_the_converter_other_viewers_get_the_table(
    charted: dict[str, Charted], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notebook.importlib.util, "find_spec", lambda _: None)
    chart = charted["comparison"].charts()[0]
    bundle = chart._repr_mimebundle_()
    assert list(bundle) == [notebook.LITE, "text/markdown", "text/plain"]
    assert all(str(row["policy"]) in bundle["text/markdown"] for row in chart.rows())


def test_names_of_a_program_cannot_become_colours_or_markup(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notebook.importlib.util, "find_spec", lambda _: None)
    data = json.loads(tierloom.profile("mg-e").text)
    data["objects"][0]["name"] = "var(--c1)"
    data["objects"][1]["name"] = "</table><script>b"
    data["phases"] = []
    charts = tierloom.Profile(json.dumps(data)).charts()
    assert any("var(--c1)" in json.dumps(chart.spec) for chart in charts)
    assert not any("<script>" in chart._repr_mimebundle_()["text/markdown"] for chart in charts)


LOADED = "import json, sys, tierloom; tierloom.machine('liu-a'); print(json.dumps(sorted(sys.modules)))"
BARE = "import sys; sys.modules['jinja2'] = None; import tierloom; print(len(tierloom.machine('liu-a').charts()))"


def test_charts_cost_nothing_until_they_are_asked_for_and_need_no_extra() -> None:
    run = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        for code in (LOADED, BARE)
    ]
    modules = json.loads(run[0].stdout)
    assert not [name for name in modules if name.partition(".")[0] in {"rich", "IPython", "jinja2"}]
    assert not [name for name in modules if name.startswith("tierloom.report")]
    assert int(run[1].stdout) > 0


class Displayed:
    """What IPython was told to show: outputs by their place, each as it was last."""

    def __init__(self) -> None:
        self.outputs: list[object] = []
        self.history: list[object] = []

    def display(self, *shown: object, raw: bool = False, display_id: bool = False) -> Displayed | None:
        assert raw == isinstance(shown[0], dict)
        self.outputs += shown
        self.history += shown
        return self if display_id else None

    def update(self, shown: object, *, raw: bool) -> None:
        assert raw
        self.outputs[-1] = shown
        self.history.append(shown)


def kernel(monkeypatch: pytest.MonkeyPatch, shell: str = progress_bar.KERNEL_SHELL) -> Displayed:
    """A process that looks like one of IPython's."""
    shown = Displayed()
    ipython, inner = ModuleType("IPython"), ModuleType("IPython.display")
    ipython.get_ipython = lambda: type(shell, (), {})()  # type: ignore[attr-defined]
    inner.display = shown.display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", inner)
    return shown


def test_a_notebook_draws_charts_one_after_the_other(
    charted: dict[str, Charted], monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = kernel(monkeypatch)
    charts = charted["plan"].charts()
    charts._ipython_display_()
    assert shown.outputs == [*charts]
    assert all(isinstance(chart, Chart) for chart in charts)


def test_a_sweep_draws_a_bar_in_a_notebook_and_takes_it_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = kernel(monkeypatch)
    sweep(Study.parse(STUDY), tmp_path, workers=0)
    assert shown.outputs == [{"text/html": "", "text/plain": ""}], "one output, and nothing is left in it"
    texts = [each["text/plain"] for each in shown.history]
    assert "sweeping: 30 of 30 points, 0 s left" in texts
    assert '<progress max="1" value="1.000"' in shown.history[-2]["text/html"]


def test_a_bar_is_not_drawn_over_a_caller_who_watches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown, told = kernel(monkeypatch), []
    sweep(Study.parse(STUDY), tmp_path, workers=0, progress=told.append)
    assert told
    assert not shown.history


def test_measuring_and_validating_draw_one_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def measured(name: str, _today: str, _full: object, tell: object) -> tuple[str, dict]:
        tell(0.25, 12.0, f"latency <of> {name}")
        return tierloom.machine("liu-a").text, {}

    shown = kernel(monkeypatch)
    monkeypatch.setattr(measurement._core, "measure_machine", measured)
    tierloom.measure("here")
    assert [each["text/plain"] for each in shown.history] == ["measuring: latency <of> here, 12 s left", ""]
    assert "latency &lt;of&gt; here, 12 s left" in shown.history[0]["text/html"]
    shown.history.clear()
    steps = ("running app", "running it again")
    monkeypatch.setattr(
        validation, "_rows", lambda _command, trial: iter([trial.steps.tell(step) for step in steps][:0])
    )
    tierloom.validate([["app"]], machine="liu-a")
    first, second, _ = (each["text/plain"] for each in shown.history)
    assert first == "validating: running app", "nobody knows yet how long a run takes"
    assert re.fullmatch(r"validating: running it again, \d+ s left", second)


def test_what_fails_takes_its_bar_away(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = kernel(monkeypatch)

    def stopped(_name: str, _today: str, _full: object, tell: object) -> None:
        tell(0.5, None, "latency")
        raise KeyboardInterrupt

    monkeypatch.setattr(measurement._core, "measure_machine", stopped)
    with pytest.raises(KeyboardInterrupt):
        tierloom.measure("here")
    assert shown.outputs == [{"text/html": "", "text/plain": ""}]


def test_elsewhere_no_bar_is_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    sweep(Study.parse(STUDY), tmp_path / "script", workers=0)
    assert "IPython" not in sys.modules
    shown = kernel(monkeypatch, "TerminalInteractiveShell")
    sweep(Study.parse(STUDY), tmp_path / "terminal", workers=0)
    assert not shown.history
