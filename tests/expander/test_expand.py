"""`tierloom expand`: tables, documents, traces, errors that say what to do."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from support import Tierloom, words_of

from tierloom.errors import RequestError
from tierloom.gpu_expansion import CONFIGS, WORKLOADS, ParameterSet, expand
from tierloom.report.pages import expansion

SHORT = ("--passes", "0.005")


def test_a_table_holds_every_configuration_against_the_yardstick(tierloom: Tierloom) -> None:
    result = tierloom("expand", "--workload", "vadd", "--media", "znand", "--config", "all", *SHORT)
    assert result.exit_code == 0
    for config in CONFIGS:
        assert re.search(rf"^ *{config} .*x ", result.stdout, re.MULTILINE), config


def test_json_is_one_document_with_the_setup_of_each_run(tierloom: Tierloom) -> None:
    words = ("--workload", "bfs", "--config", "cxl,cxl-ds", "--media", "znand", "--check", "--json", *SHORT)
    runs = json.loads(tierloom("expand", *words).stdout)["runs"]
    assert [run["setup"]["config"] for run in runs] == ["gpu-dram", "cxl", "cxl-ds"]
    assert all(run["checked"] == run["accesses"] for run in runs)
    assert runs[0]["time_s"] < runs[2]["time_s"]


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ((), "one of workload and trace has to be given, and neither is"),
        (("--workload", "vadd", "--trace", "walk.npy"), "and both are"),
        (("--workload", "fft"), "use one of: bfs"),
        (("--workload", "vadd", "--config", "dax"), "use some of: gpu-dram"),
        (("--workload", "vadd", "--media", "tape"), "use one of: nand"),
        (("--workload", "vadd", "--gpu", "tpu"), "use one of: h100"),
        (("--workload", "vadd", "--local-ratio", "0.5"), "check the number"),
        (("--workload", "vadd", "--set", "nowhere.toml"), "--write-set"),
        (("--trace", "nowhere.bin"), "nowhere.bin: No such file or directory hint: give 16-byte records"),
        (("--trace", "nowhere.bin", "--passes", "2"), "--passes does nothing beside --trace"),
        (("--workload", "vadd", "--timeline-step", "2"), "--timeline-step does nothing without --timeline"),
    ],
)
def test_a_wrong_request_ends_with_words(tierloom: Tierloom, folder: Path, words: tuple[str, ...], hint: str) -> None:  # noqa: ARG001
    result = tierloom("expand", *words)
    assert result.exit_code == 2
    assert result.stderr.startswith("error:")
    assert hint in " ".join(result.stderr.split())


def test_a_controller_of_250_ns_costs_more(folder: Path) -> None:  # noqa: ARG001
    near, far = (expand("vadd", controller_ns=ns, passes=0.01)["time_s"] for ns in (80.0, 250.0))
    assert far > near * 1.3


def test_a_read_of_an_idle_endpoint_takes_the_published_round_trip(folder: Path) -> None:
    """80 ns with its DRAM; the wire takes 3 ns of a line more, and refreshes hold some up."""
    rows = np.zeros(200, dtype=[("address", "<u8"), ("thread", "<u4"), ("store", "<u4")])
    rows["address"] = np.arange(200) * (64 << 10)
    np.save(folder / "walk.npy", rows)
    assert 80.0 < expand(trace=folder / "walk.npy", config="cxl")["loads"]["mean_ns"] < 100.0


def test_two_ports_share_the_lines_and_lose_nothing() -> None:
    run = expand("conv3", config="cxl-sr", media="nand", ports=2, carry=True, passes=0.01)
    assert run["checked"] == run["accesses"]


def test_prefetching_saves_faults() -> None:
    none, tree = (expand("vadd", config="uvm", prefetch=how, passes=0.02)["paging"] for how in ("none", "tree"))
    assert tree["faults"] * 4 < none["faults"]


def test_a_parameter_set_can_be_written_changed_and_used(tierloom: Tierloom, folder: Path) -> None:
    file = folder / "mine.toml"
    assert tierloom("expand", "--write-set", file).exit_code == 0
    file.write_text(re.sub(r"^round_trip_ns = .*$", SLOW, file.read_text(), flags=re.MULTILINE))
    ours = expand("vadd", parameters=ParameterSet.load(), passes=0.01)
    mine = expand("vadd", parameters=ParameterSet.load(file), passes=0.01)
    assert mine["time_s"] > ours["time_s"] * 1.3
    file.write_text(file.read_text().replace("[link]", "[line]"))
    with pytest.raises(RequestError, match=r"mine\.toml.*line"):
        expand("vadd", parameters=ParameterSet.load(file))


SLOW = 'round_trip_ns = { value = 250.0, kind = "published", source = "press" }'


def test_every_figure_of_the_set_has_a_source_that_is_explained() -> None:
    data = ParameterSet.load().data
    figures = [figure for figure in walk(data) if {"value", "kind", "source"} <= set(figure)]
    assert len(figures) > 100
    assert set(data["workloads"]) == set(WORKLOADS)
    for figure in figures:
        assert figure["kind"] in {"measured", "published", "derived", "assumed"}
        assert figure["source"] in data["sources"]
        assert figure["kind"] not in {"derived", "assumed"} or figure.get("how"), figure


def walk(value: object) -> list[dict]:
    """All tables in a document."""
    if not isinstance(value, dict):
        return []
    return [value, *(table for inner in value.values() for table in walk(inner))]


@pytest.mark.parametrize("kind", ["npy", "bin"])
def test_traces_of_both_kinds_say_the_same(folder: Path, kind: str) -> None:
    rows = np.zeros(3000, dtype=[("address", "<u8"), ("thread", "<u4"), ("store", "<u4")])
    rows["address"] = 1 << 40
    rows["address"] += np.arange(3000, dtype=np.uint64) * 64 % 100_000
    rows["thread"] = np.arange(3000) // 64
    rows["store"] = np.arange(3000) % 4 == 0
    path = folder / f"trace.{kind}"
    if kind == "npy":
        np.save(path, rows)
    else:
        path.write_bytes(rows.tobytes())
    run = expand(trace=path, carry=True)
    assert (run["accesses"], run["stores"], run["checked"]) == (3000, 750, 3000)


def test_a_time_series_is_drawn(tierloom: Tierloom, folder: Path) -> None:
    words = ("--workload", "mri", "--media", "znand", "--config", "cxl-ds", "--timeline", folder / "mri.svg", *SHORT)
    assert tierloom("expand", *words).exit_code == 0
    drawn = words_of(folder / "mri.svg")
    titles = [f"{title} over time" for title, _, _ in expansion.SERIES]
    assert [text for text in drawn if text in titles] == titles
    assert {"light", "optimal", "moderate", "severe", "99th percentile", "store stack"} <= set(drawn)


def test_a_time_series_has_a_gap_where_nothing_is_loaded() -> None:
    """The endpoint works on after the last load; a latency of 0 there would be drawn as the axis's lowest."""
    run = expand("mri", config="cxl-ds", media="znand", passes=0.02, timeline_ns=1e5)
    loads, stores, entries = expansion.picture(run).charts[:3]
    idle = [step["load_ns"][1] == 0 for step in run["timeline"]]
    assert any(idle)
    for chart in (loads, stores):
        assert [row["value"] is None for row in chart.data if row["what"] == "99th percentile"] == idle
    assert entries.spec["encoding"]["y"]["scale"]["domain"][1] >= 1
    for chart in (
        entries,
        *expansion.picture(expand("vadd", config="gpu-dram", passes=0.001, timeline_ns=1e3)).charts[2:],
    ):
        low, high = chart.spec["encoding"]["y"]["scale"]["domain"]
        assert low < high, f"an axis of {chart.title} where nothing happens still has two ends"
