"""Curve directories of Mess, with the faults that published ones have."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import works_or_explains

from tierloom.errors import MachineError
from tierloom.machine_formats import import_machine

READS = "26765.0\t612.0\n26650.0\t135.9\n25600.0\t123.4\n8530.0\t108.9\n320.0\t107.4\n"
HALVES = "40000.0\t158.0\n39900.0\t155.2\n18300.0\t119.3\n320.0\t107.4\n"
NODE = {0: "cxl:128GiB"}


@pytest.fixture
def curves(tmp_path: Path) -> Path:
    folder = tmp_path / "cxl"
    folder.mkdir()
    (folder / "bwlat_100.txt").write_text(READS)
    (folder / "bwlat_50.txt").write_text(HALVES)
    return folder


def test_each_file_becomes_a_curve(curves: Path) -> None:
    found = import_machine([curves], "expander", cores=8, nodes=NODE)
    path = found.machine.data["paths"][0]
    shares = [curve["read_fraction"] for curve in path["load"]["points"]]
    assert shares == [0.5, 1.0]
    assert path["load"]["points"][1]["points"] == [
        [0.0, 107.4],
        [0.32, 107.4],
        [8.53, 108.9],
        [25.6, 123.4],
        [26.7075, 373.95],
    ], "points closer than half a per cent are one"
    assert path["idle_ns"]["value"] == 107.4
    assert found.machine.curve("socket0", "node0", 0.5).peak_gb_s == pytest.approx(39.95)


def test_the_unit_of_latencies_is_asked_for_and_warned_of(curves: Path) -> None:
    assert "--ghz" in import_machine([curves], cores=8, nodes=NODE).warnings[0]["remedy"]
    found = import_machine([curves], cores=8, nodes=NODE, ghz=2.1)
    assert found.warnings == []
    assert found.machine.data["paths"][0]["idle_ns"]["value"] == pytest.approx(107.4 / 2.1)


def test_curves_are_of_the_path_that_is_named(curves: Path) -> None:
    nodes = {0: "dram:64GiB", 2: "cxl:128GiB"}
    paths = import_machine([f"0:0={curves}", f"0:2={curves}"], cores=8, nodes=nodes).machine.data["paths"]
    assert [(path["from"], path["to"]) for path in paths] == [("socket0", "node0"), ("socket0", "node2")]


def test_the_table_of_newer_versions_is_read(tmp_path: Path) -> None:
    file = tmp_path / "memory_curves.csv"
    file.write_text("read_pct_rounded,pause,bandwidth_smooth,latency_smooth\n100,0,200,250\n100,900,10,100\n")
    path = import_machine([file], cores=8, nodes={0: "dram:64GiB"}).machine.data["paths"][0]
    assert path["load"]["points"][0]["points"] == [[0.0, 100.0], [10.0, 100.0], [200.0, 250.0]]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("26765\n26650\n", "bwlat_100.txt: line 1: 1 column(s)"),
        ("100\t100\n-5\t90\n", "bwlat_100.txt: line 2: `-5`"),
        ("100\t100\n200\tx\n", "bwlat_100.txt: line 2: `x`"),
        ("100\t100\n200\t0.5\n", "bwlat_100.txt: line 2: 0.5 ns is no memory latency"),
        ("100\t100\n", "1 point(s) make no curve"),
        ("100 100\n100 120\n", "2 point(s) make no curve"),
        ("", "0 point(s) make no curve"),
    ],
)
def test_the_faults_of_published_files_are_named(curves: Path, text: str, told: str) -> None:
    (curves / "bwlat_100.txt").write_text(text)
    with pytest.raises(MachineError) as caught:
        import_machine([curves], cores=8, nodes=NODE)
    assert told in str(caught.value)
    assert "\nhint: " in str(caught.value)


@pytest.mark.parametrize(
    "text", ["", "a,b\n1,2\n", "rd_percentage,bandwidth,latency\n", "rd_percentage,bandwidth,latency\n101,1,2\n"]
)
def test_a_table_without_curves_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "memory_curves.csv").write_text(text)
    with pytest.raises(MachineError, match=r"memory_curves\.csv: "):
        import_machine([tmp_path / "memory_curves.csv"], cores=8, nodes=NODE)


def test_a_folder_that_is_neither_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MachineError, match="neither a recorded /sys nor a curve directory"):
        import_machine([tmp_path])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(st.tuples(st.floats(), st.floats()) | st.text(max_size=20), max_size=12))
def test_any_text_ends_in_one_clear_error_or_a_machine(tmp_path: Path, rows: list) -> None:
    (tmp_path / "bwlat_100.txt").write_text(
        "\n".join(row if isinstance(row, str) else f"{row[0]}\t{row[1]}" for row in rows), encoding="utf-8"
    )
    works_or_explains(lambda: import_machine([tmp_path], cores=8, nodes=NODE))
