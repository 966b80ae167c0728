"""Logs of Intel MLC: the tables as they are printed, spaced or with tabs, whole or in parts."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import works_or_explains

from tierloom.errors import MachineError
from tierloom.machine_formats import import_machine

LOG = """\
Intel(R) Memory Latency Checker - v3.11b
Measuring idle latencies for sequential access (in ns)...
\t\tNuma node
Numa node\t     0\t     1\t     2\t
       0\t  80.0\t 140.0\t 250.0\t
       1\t 141.0\t  82.0\t 380.0\t

Measuring Peak Injection Memory Bandwidths for the system
Bandwidths are in MB/sec (1 MB/sec = 1,000,000 Bytes/sec)
Using traffic with the following read-write ratios
ALL Reads        :\t200000.0\t
3:1 Reads-Writes :\t190000.0\t
1:1 Reads-Writes :\t160000.0\t
Stream-triad like:\t170000.0\t

Measuring Memory Bandwidths between nodes within system
Bandwidths are in MB/sec (1 MB/sec = 1,000,000 Bytes/sec)
Using Read-only traffic type
\t\tNuma node
Numa node\t     0\t     1\t     2\t
       0\t100000.0\t 34000.0\t 26000.0\t
       1\t 34100.0\t100200.0\t     -\t

Measuring Loaded Latencies for the system
Using all the threads from each core if Hyper-threading is enabled
Using Read-only traffic type
Inject\tLatency\tBandwidth
Delay\t(ns)\tMB/sec
==========================
 00000\t329.26\t 199154.0
 00100\t325.98\t 198992.6
 00300\t127.88\t 132998.9
 01000\t 91.30\t  42927.2
 20000\t 82.30\t   2932.1

Measuring cache-to-cache transfer latency (in ns)...
Local Socket L2->L2 HIT  latency\t49.5
"""
NODES = {0: "dram:64GiB", 1: "dram:64GiB", 2: "cxl:128GiB"}


def log(folder: Path, text: str = LOG) -> Path:
    file = folder / "mlc.log"
    file.write_text(text, encoding="utf-8")
    return file


def paths(machine: object) -> dict[tuple[str, str], dict]:
    return {(path["from"], path["to"]): path for path in machine.data["paths"]}  # type: ignore[attr-defined]


def test_the_matrices_become_paths(tmp_path: Path) -> None:
    machine = import_machine([log(tmp_path)], "two", cores=32, nodes=NODES).machine
    found = paths(machine)
    assert len(found) == 6
    assert found["socket1", "node0"]["idle_ns"]["value"] == 141.0
    assert found["socket0", "node2"]["idle_ns"] | {"how": ""} == {
        "value": 250.0,
        "kind": "measured",
        "source": "mlc",
        "how": "",
    }
    assert machine.curve("socket1", "node0").peak_gb_s == pytest.approx(34.1)
    assert [memory["kind"] for memory in machine.data["memories"]] == ["dram", "dram", "cxl"]
    assert machine.data["memories"][2]["socket"] == "socket0"
    assert "v3.11b" in machine.data["sources"]["mlc"]


def test_a_bandwidth_that_is_not_told_is_assumed_and_marked(tmp_path: Path) -> None:
    machine = import_machine([log(tmp_path)], "two", cores=32, nodes=NODES).machine
    far = paths(machine)["socket1", "node2"]["load"]["form"]
    assert machine.curve("socket1", "node2").peak_gb_s == pytest.approx(26.0, rel=1e-3)
    assert "no source tells" in far["origin"]["how"]


def test_loaded_latencies_of_the_system_are_shared_by_its_nodes(tmp_path: Path) -> None:
    machine = import_machine([log(tmp_path)], "two", cores=32, nodes=NODES).machine
    for node in (0, 1):
        curve = paths(machine)[f"socket{node}", f"node{node}"]["load"]["points"][0]
        assert curve["points"][-1] == [pytest.approx(99.5367), pytest.approx(327.62)], "two equal loads, their mean"
        assert curve["points"][1] == [pytest.approx(1.466, abs=1e-3), pytest.approx(82.3)]
        assert curve["origin"]["kind"] == "derived"


def test_one_path_is_named_for_a_log_without_matrices(tmp_path: Path) -> None:
    text = "Command line parameters: --loaded_latency -W5\n" + LOG[LOG.index("Measuring Loaded") :]
    file = log(tmp_path, text)
    with pytest.raises(MachineError, match="say so: 0:0="):
        import_machine([file], cores=8, nodes={0: "dram:64GiB"})
    machine = import_machine([f"0:0={file}"], "one", cores=8, nodes={0: "dram:64GiB"}).machine
    curve = paths(machine)["socket0", "node0"]["load"]["points"][0]
    assert curve["read_fraction"] == 0.5
    assert curve["points"][-1][0] == pytest.approx((199.154 + 198.9926) / 2, abs=1e-3)


def test_a_lone_idle_latency_is_of_node_0(tmp_path: Path) -> None:
    file = log(tmp_path, "Each iteration took 202.0 core clocks ( 80.8    ns)\n")
    machine = import_machine([file], "one", cores=8, nodes={0: "dram:64GiB"}).machine
    assert paths(machine)["socket0", "node0"]["idle_ns"]["value"] == 80.8


def test_spaces_are_as_good_as_tabs(tmp_path: Path) -> None:
    spaced = import_machine([log(tmp_path, LOG.replace("\t", "        "))], "two", cores=32, nodes=NODES).machine
    tabbed = import_machine([log(tmp_path)], "two", cores=32, nodes=NODES).machine
    assert spaced.text == tabbed.text


def test_a_topology_tells_what_a_log_cannot(tmp_path: Path) -> None:
    with pytest.raises(MachineError, match="how large node 0 is"):
        import_machine([log(tmp_path)])
    with pytest.raises(MachineError, match="how many cores"):
        import_machine([log(tmp_path)], nodes=NODES)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("  80.0\t 140.0\t 250.0", "  80.0\t 140.0", "line 5: 2 figures for 3 nodes"),
        ("  80.0\t", "  eighty\t", "line 5: `eighty` is not a number above 0"),
        ("329.26\t 199154.0", "329.26", "line 30: 2 figures where"),
        (" 199154.0", " -5", "line 30: `-5`"),
        ("Numa node\t     0\t     1\t     2\t\n       0\t  80.0", "nothing", "no line `Numa node 0 1 …` follows"),
        ("==========================\n", "", "no table follows"),
        ("200000.0", "nan", "line 11: `nan`"),
        ("Measuring cache", "Command line parameters: --loaded_latency -W7\n", "traffic -W7"),
    ],
)
def test_what_is_wrong_is_said_with_file_and_line(tmp_path: Path, old: str, new: str, told: str) -> None:
    file = log(tmp_path, LOG.replace(old, new))
    with pytest.raises(MachineError) as caught:
        import_machine([file], cores=32, nodes=NODES)
    assert str(caught.value).startswith(str(file))
    assert told in str(caught.value)
    assert "\nhint: " in str(caught.value)


def test_a_file_without_tables_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MachineError, match="holds no table of Intel MLC"):
        import_machine([log(tmp_path, "hello\n")])
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(MachineError, match="not a text file"):
        import_machine([tmp_path / "binary"])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    lines=st.lists(st.sampled_from(LOG.splitlines()) | st.text(alphabet="0123456789.:-\t Numa=", max_size=30)),
)
def test_any_lines_end_in_one_clear_error_or_a_machine(tmp_path: Path, lines: list[str]) -> None:
    file = log(tmp_path, "\n".join(lines))
    works_or_explains(lambda: import_machine([file], cores=32, nodes=NODES))


PEAKS = {1.0: 200000.0, 0.75: 262000.0, 2 / 3: 270000.0, 0.5: 222000.0}


def with_peaks(peaks: dict[float, float]) -> str:
    """The log with other peaks, by share of reads."""
    head, _, rest = LOG.partition("ALL Reads")
    rest = rest[rest.index("Stream-triad") :]
    names = {1.0: "ALL Reads", 0.75: "3:1 Reads-Writes", 2 / 3: "2:1 Reads-Writes", 0.5: "1:1 Reads-Writes"}
    return head + "".join(f"{names[share]} :\t{mb_s}\n" for share, mb_s in peaks.items()) + rest


def test_mixes_above_all_reads_are_lanes_and_not_one_bus(tmp_path: Path) -> None:
    """Node 0 has half of the system's read peak; each mix comes out as it was measured, within 3 %."""
    machine = import_machine([log(tmp_path, with_peaks(PEAKS))], "two", cores=32, nodes=NODES).machine
    loads = {ends: path["load"] for ends, path in paths(machine).items()}
    assert "points" in loads["socket0", "node0"], "the log has a curve of reads for it"
    text = with_peaks(PEAKS)
    text = text[: text.index("Measuring Loaded")]
    machine = import_machine([log(tmp_path, text)], "two", cores=32, nodes=NODES).machine
    for share, mb_s in PEAKS.items():
        assert machine.curve("socket0", "node0", share).peak_gb_s == pytest.approx(mb_s / 2e3, rel=0.03), share
    origin = paths(machine)["socket0", "node0"]["load"]["form"]["origin"]
    assert "each direction has a lane of its own" in origin["how"]
    assert "full" not in paths(machine)["socket0", "node1"]["load"]["form"]["peak"]


def test_one_bus_stays_one(tmp_path: Path) -> None:
    text = LOG[: LOG.index("Measuring Loaded")]
    machine = import_machine([log(tmp_path, text)], "two", cores=32, nodes=NODES).machine
    assert "half" in paths(machine)["socket0", "node0"]["load"]["form"]["peak"]
    assert machine.curve("socket0", "node0", 0.5).peak_gb_s == pytest.approx(80.0, abs=1e-3)


def test_peaks_without_a_matrix_are_those_of_the_nodes_with_cpus(tmp_path: Path) -> None:
    text = LOG[: LOG.index("Measuring Memory Bandwidths")]
    machine = import_machine([log(tmp_path, text)], "two", cores=32, nodes=NODES).machine
    assert machine.curve("socket1", "node1").peak_gb_s == pytest.approx(100.0)


def table(head: str, *rows: str, gap: str = "") -> str:
    lines = ["Measuring Loaded Latencies for the system", head, "Inject  Latency Bandwidth", "=" * 20, *rows]
    return f"\n{gap}".join(lines) + "\n"


ROWS = (" 00000  300.0  100000.0", " 01000  110.0  50000.0", " 20000  90.0  1000.0")
MIXED = (" 00000  350.0  80000.0", " 01000  120.0  40000.0", " 20000  95.0  900.0")
ONE = {0: "dram:64GiB"}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Command line parameters: --loaded_latency\n", "Command line parameters: --loaded_latency -W5\n"),
        ("Command line parameters: --loaded_latency -R\n", "Command line parameters: --loaded_latency -W5 -t2\n"),
    ],
)
def test_two_tables_of_different_mixes_are_two_curves(tmp_path: Path, first: str, second: str) -> None:
    text = first + table("Using Read-only traffic type", *ROWS) + second + table("Using traffic", *MIXED)
    machine = import_machine([f"0:0={log(tmp_path, text)}"], "one", cores=8, nodes=ONE).machine
    curves = paths(machine)["socket0", "node0"]["load"]["points"]
    assert {curve["read_fraction"]: curve["points"][-1] for curve in curves} == {
        0.5: [80.0, 350.0],
        1.0: [100.0, 300.0],
    }


def test_a_table_that_is_there_twice_counts_once_and_is_said(tmp_path: Path) -> None:
    text = table("Using Read-only traffic type", *MIXED) + table("Using Read-only traffic type", *ROWS)
    found = import_machine([f"0:0={log(tmp_path, text)}"], "one", cores=8, nodes=ONE)
    (curve,) = paths(found.machine)["socket0", "node0"]["load"]["points"]
    assert curve["points"][-1] == [100.0, 300.0]
    assert any("has this table twice" in warning["what"] for warning in found.warnings)


def test_blank_lines_between_rows_are_none(tmp_path: Path) -> None:
    close = log(tmp_path, table("Using Read-only traffic type", *ROWS))
    near = import_machine([f"0:0={close}"], "one", cores=8, nodes=ONE).machine.text
    apart = log(tmp_path, table("Using Read-only traffic type", *ROWS, gap="\n \n"))
    assert import_machine([f"0:0={apart}"], "one", cores=8, nodes=ONE).machine.text == near
    matrix = LOG[: LOG.index("Measuring Loaded")]
    spaced = import_machine([log(tmp_path, matrix.replace("\n", "\n\n"))], "two", cores=32, nodes=NODES).machine
    assert spaced.text == import_machine([log(tmp_path, matrix)], "two", cores=32, nodes=NODES).machine.text


@pytest.mark.parametrize("head", ["Memory node\nSocket       0       1", "Numa node  Numa node\nNuma node   0   1"])
def test_heads_of_other_versions_are_read(tmp_path: Path, head: str) -> None:
    text = f"Measuring idle latencies (in ns)...\n\t{head}\n 0  80.0  130.0\n 1  131.0  81.0\n"
    machine = import_machine([log(tmp_path, text)], "two", cores=8, nodes={0: "dram:64GiB", 1: "dram:64GiB"}).machine
    assert paths(machine)["socket1", "node0"]["idle_ns"]["value"] == 131.0


def each_took(mib: float, ns: float) -> str:
    return f"Using buffer size of {mib:.3f}MiB\nEach iteration took 9.9 base frequency clocks ( {ns}  ns)\n"


def test_of_idle_latencies_by_buffer_size_that_of_the_largest_is_the_memorys(tmp_path: Path) -> None:
    text = each_took(0.0625, 5.1) + each_took(2000, 96.5) + each_took(16, 31.0)
    found = import_machine([log(tmp_path, text)], "one", cores=8, nodes=ONE)
    assert paths(found.machine)["socket0", "node0"]["idle_ns"]["value"] == 96.5
    assert not found.warnings
    small = import_machine([log(tmp_path, each_took(16, 31.0))], "one", cores=8, nodes=ONE)
    assert "may lie in a last-level cache" in small.warnings[0]["cause"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("available: 2 nodes (0-1)\nnode 0 cpus: 0 1\nnode 0 size: 31987 MB\n", "what `numactl -H` prints"),
        ("Architecture:            x86_64\nCPU op-mode(s):  32-bit, 64-bit\nCPU(s):  4\n", "what `lscpu` prints"),
        ("Machine (15GB total)\n  Package L#0\n    Core L#0 + PU L#0 (P#0)\n", "the text of lstopo"),
    ],
)
def test_what_another_program_prints_is_called_so(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(MachineError, match=rf"{told}, no log of Intel MLC\nhint: give the machine's hwloc XML"):
        import_machine([log(tmp_path, text)])


def test_peaks_alone_are_of_the_path_that_is_told(tmp_path: Path) -> None:
    start, end = LOG.index("Measuring Peak"), LOG.index("Measuring Memory Bandwidths")
    file = log(tmp_path, LOG[start:end])
    with pytest.raises(MachineError, match=r"nothing tells .* the peaks are of\nhint: say so: 0:0="):
        import_machine([file], nodes=NODES, cores=8)
    machine = import_machine([f"0:0={file}"], nodes={0: "dram:64GiB"}, cores=8).machine
    assert machine.curve("socket0", "node0", 1.0).peak_gb_s == pytest.approx(200.0, rel=0.01)
    assert machine.curve("socket0", "node0", 0.5).peak_gb_s == pytest.approx(160.0, rel=0.01)
