"""Recorded `/proc` and `/sys`: firmware's figures, CXL devices, and the traps of the kernel's tiers."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import works_or_explains

from tierloom.errors import MachineError, RequestError
from tierloom.machine_formats import import_machine

NODE2 = "/sys/devices/system/node/node2"
HMAT = f"""\
/sys/devices/system/node/node0/distance = 10 21 24
/sys/devices/system/node/node1/distance = 21 10 28
{NODE2}/distance = 24 28 10
/sys/devices/system/node/node0/access0/initiators/read_latency = 100
/sys/devices/system/node/node0/access0/initiators/node0 =
/sys/devices/system/node/node0/access0/initiators/read_bandwidth = 100000
{NODE2}/access0/initiators/read_latency = 999
{NODE2}/access1/initiators/node0 =
{NODE2}/access1/initiators/read_latency = 250
{NODE2}/access1/initiators/write_latency = 260
{NODE2}/access1/initiators/read_bandwidth = 30000
{NODE2}/access1/initiators/write_bandwidth = 20000
/sys/bus/cxl/devices/mem0/ram/size = 0x80000000
/sys/bus/cxl/devices/mem0/pmem/size = 0x0
/sys/bus/cxl/devices/mem0/serial = 0x1234
/sys/bus/cxl/devices/region0/mode = ram
/sys/bus/cxl/devices/region0/interleave_ways = 1
"""


def figures(machine: object) -> dict[tuple[str, str], dict]:
    return {(path["from"], path["to"]): path["idle_ns"] for path in machine.data["paths"]}  # type: ignore[attr-defined]


def test_firmwares_figures_come_from_the_nearest_cpus(tree) -> None:
    machine = import_machine([tree("two-nodes-cxl", HMAT)], "recorded").machine
    idle = figures(machine)
    assert idle["socket0", "node2"] == {
        "value": 250.0,
        "kind": "published",
        "source": "sysfs",
        "how": "HMAT or CDAT, access class 1",
    }
    assert machine.curve("socket0", "node2").peak_gb_s == pytest.approx(30.0, rel=0.02)
    assert [memory["kind"] for memory in machine.data["memories"]] == ["dram", "dram", "cxl"]
    assert machine.data["memories"][2]["socket"] == "socket0"


def test_what_firmware_leaves_out_follows_its_distances(tree) -> None:
    idle = figures(import_machine([tree("two-nodes-cxl", HMAT)]).machine)
    assert idle["socket1", "node2"]["value"] == pytest.approx(250 * 28 / 24, abs=0.05)
    assert idle["socket1", "node2"]["kind"] == "derived"
    assert idle["socket1", "node0"]["value"] == 210.0
    assert idle["socket1", "node1"]["kind"] == "assumed"


@pytest.mark.parametrize(
    ("change", "figure"),
    [
        ("read_latency = 17300", "an idle latency of 17300 ns"),
        ("write_bandwidth = 1", "a write bandwidth of 0.001 GB/s"),
    ],
)
def test_a_figure_that_no_memory_has_is_told_and_left_out(tree, change: str, figure: str) -> None:
    """17300 ns is what Linux 6.12 makes of QEMU's CXL device."""
    found = import_machine([tree("two-nodes-cxl", f"{HMAT}{NODE2}/access1/initiators/{change}\n")])
    (told,) = [warning["what"] for warning in found.warnings if "no memory has" in warning["what"]]
    assert f"{figure} from node 0 to node 2" in told
    idle = figures(found.machine)["socket0", "node2"]
    assert idle["value"] < 1000
    assert (idle["kind"] == "published") == ("latency" not in figure)


def test_cxl_memory_that_no_region_uses_is_told(tree) -> None:
    found = import_machine([tree("two-nodes-cxl", HMAT)])
    assert "1 GiB of CXL memory (mem0) are in no region" in [warning["what"] for warning in found.warnings]
    assert found.machine.data["notes"] == ["CXL region0: 1 GiB of ram, node 2."]


def test_the_traps_of_the_tiers_are_told(tree) -> None:
    one_tier = (
        "/sys/devices/virtual/memory_tiering/memory_tier4/nodelist = 0-2\n"
        "/sys/devices/virtual/memory_tiering/memory_tier37/nodelist ="
    )
    told = [warning["what"] for warning in import_machine([tree("two-nodes-cxl", one_tier)]).warnings]
    assert [what for what in told if "assumed latency" not in what] == [
        "pages of node 2 (memory_tier4) can never be promoted",
        "kernel.numa_balancing is 1: no page moves up a tier",
        "the multi-generational LRU is on",
    ]


def test_a_node_faster_than_every_node_with_cpus_is_stacked_memory(tree) -> None:
    fast = f"{HMAT}{NODE2}/access1/initiators/read_bandwidth = 400000\n"
    memory = import_machine([tree("two-nodes-cxl", fast)]).machine.data["memories"][2]
    assert memory["kind"] == "hbm"


def test_one_node_is_a_machine_with_everything_assumed_but_the_kernels_word(tree) -> None:
    machine = import_machine([tree("one-node")], "plain").machine
    assert figures(machine)["socket0", "node0"]["kind"] == "assumed"
    assert machine.data["sockets"][0]["cores"] | {"how": ""} == {
        "value": 2,
        "kind": "measured",
        "source": "sysfs",
        "how": "",
    }


@pytest.mark.parametrize("kind", ["cxl", "pmem"])
def test_far_memory_that_nobody_measured_is_slower_than_dram_and_said_to_be_assumed(tree, kind: str) -> None:
    found = import_machine([tree("one-node")], "plain", nodes={1: f"{kind}:128GiB"})
    near, far = (found.machine.curve("socket0", node) for node in ("node0", "node1"))
    for share in (0.1, 0.5, 0.9, 1.0):
        assert far.latency_ns(share) > near.latency_ns(min(share, 0.5)), share
    for reads in (1.0, 2 / 3, 0.5, 0.0):
        peaks = [found.machine.curve("socket0", node, reads).peak_gb_s for node in ("node0", "node1")]
        assert peaks[1] < peaks[0], reads
    assert figures(found.machine)["socket0", "node1"]["kind"] == "assumed"
    (told,) = [warning["what"] for warning in found.warnings if "assumed" in warning["what"]]
    assert f"node 1 ({kind}): assumed latency (" in told
    assert "and bandwidth (" in told


@pytest.mark.parametrize("kind", ["hbm", "lpddr", "ssd"])
def test_a_kind_without_published_figures_is_warned_of(tree, kind: str) -> None:
    found = import_machine([tree("one-node")], "plain", nodes={1: f"{kind}:16GiB"})
    assert any(f"node 1 ({kind}): assumed latency (as of DRAM)" in warning["what"] for warning in found.warnings)


def test_what_firmware_tells_of_far_memory_is_not_assumed(tree) -> None:
    assert not any("assumed latency" in w["what"] for w in import_machine([tree("two-nodes-cxl", HMAT)]).warnings)


def test_this_machine_can_be_imported() -> None:
    assert import_machine(["/"], "here").machine.data["memories"]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (f"{NODE2}/access1/initiators/read_latency = fast", "access1/initiators/read_latency: `fast`"),
        (f"{NODE2}/distance = near", "node2/distance: `near`"),
        ("/sys/devices/system/node/online = 0-x", "node/online: `0-x`"),
        ("/sys/bus/cxl/devices/mem0/ram/size = 1GB", "mem0/ram/size: `1GB`"),
        ("/sys/devices/system/node/node1/cpulist = all", "node1/cpulist: `all`"),
    ],
)
def test_what_is_wrong_is_said_with_the_file(tree, change: str, told: str) -> None:
    with pytest.raises(MachineError) as caught:
        import_machine([tree("two-nodes-cxl", HMAT + change)])
    assert told in str(caught.value)
    assert "\nhint: " in str(caught.value)


def test_a_folder_without_nodes_is_no_machine(tmp_path: Path) -> None:
    (tmp_path / "sys/devices/system").mkdir(parents=True)
    with pytest.raises(MachineError, match="no memory node is described there"):
        import_machine([tmp_path])


@pytest.mark.parametrize(("nodes", "told"), [({2: "ram:1GiB"}, "no kind of memory `ram`"), ({2: "cxl:much"}, "64GiB")])
def test_what_is_given_by_hand_is_checked(tree, nodes: dict[int, str], told: str) -> None:
    with pytest.raises(RequestError, match=told):
        import_machine([tree("two-nodes-cxl")], nodes=nodes)


PATHS = [line.split(" =")[0] for line in HMAT.splitlines()]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes=st.dictionaries(st.sampled_from(PATHS), st.text("0123456789abx -,\n", max_size=24), max_size=4))
def test_any_values_end_in_one_clear_error_or_a_machine(tree, changes: dict[str, str]) -> None:
    lines = "".join(f"{path} = {text.replace(chr(10), ' ')}\n" for path, text in changes.items())
    works_or_explains(lambda: import_machine([tree("two-nodes-cxl", HMAT + lines)]))
