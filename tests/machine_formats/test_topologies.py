"""Which socket a memory hangs on, what it is made of, and which processors there are: the same from every source."""

from __future__ import annotations

from pathlib import Path

import pytest
from machine_formats.topologies import (
    attribute,
    cores,
    cpus,
    distance_of,
    distances,
    info,
    node,
    package,
    places,
    size,
    sockets,
    sys_tree,
    warned,
    written,
    xml,
)

from tierloom.errors import MachineError
from tierloom.machine_formats import import_machine

NEAR, FAR = cpus(0x0F), cpus(0xF0)
TWO = distances([0, 1], [[10, 21], [21, 10]])


def test_stacked_memory_is_on_the_socket_whose_cpus_it_names(tmp_path: Path) -> None:
    """Nodes are numbered across: the HBM of socket 0 is node 3."""
    first = package(node(0, NEAR, kind="DRAM") + node(3, NEAR, 4, kind="HBM") + cores(0, 1, 2, 3), NEAR)
    second = package(node(1, FAR, kind="DRAM") + node(2, FAR, 4, kind="MCDRAM") + cores(4, 5, 6, 7), FAR)
    found = import_machine([written(tmp_path, xml(first, second))])
    assert places(found)["node3"] == ("hbm", "socket0")
    assert places(found)["node2"] == ("hbm", "socket1")
    assert not [warning for warning in found.warnings if "assumed latency" not in warning["what"]]


def test_a_memory_of_the_whole_machine_is_on_the_socket_of_its_best_initiator(tmp_path: Path) -> None:
    both = package(node(0, NEAR) + cores(0, 1, 2, 3), NEAR) + package(node(1, FAR) + cores(4, 5, 6, 7), FAR)
    told = attribute("Bandwidth", (2, 30000, 0xF0), (2, 20000, 0x0F))
    found = import_machine([written(tmp_path, xml(both, node(2, cpus(0xFF), kind="CXL-DRAM"), more=told))])
    assert places(found)["node2"] == ("cxl", "socket1")
    assert sockets(found) == {"socket0": 4, "socket1": 4}


TIERS = {
    "cpu/online": "0-7",
    "node/online": "0-1,4,6",
    "node/node0/cpulist": "0-3",
    "node/node0/meminfo": size(0, 16),
    "node/node0/access1/initiators/node0": "",
    "node/node0/access1/initiators/read_bandwidth": "1000",
    "node/node1/cpulist": "4-7",
    "node/node1/meminfo": size(1, 16),
    "node/node1/access1/initiators/node1": "",
    "node/node1/access1/initiators/read_bandwidth": "1000",
    "node/node4/cpulist": "",
    "node/node4/meminfo": size(4, 4),
    "node/node4/access1/initiators/node1": "",
    "node/node4/access1/initiators/read_bandwidth": "10000",
    "node/node6/cpulist": "",
    "node/node6/meminfo": size(6, 64),
    "node/node6/access1/initiators/node1": "",
    "node/node6/access1/initiators/read_bandwidth": "300",
}


def test_xml_and_sys_of_one_machine_agree(tmp_path: Path) -> None:
    first = package(node(0, NEAR, kind="DRAM") + cores(0, 1, 2, 3), NEAR)
    beside = node(1, FAR, kind="DRAM") + node(4, FAR, 4, kind="HBM") + node(6, FAR, 64, kind="NVM")
    second = package(beside + cores(4, 5, 6, 7), FAR)
    of_xml = import_machine([written(tmp_path, xml(first, second))])
    root = sys_tree(tmp_path / "tree", TIERS)
    device = root / "sys/devices/LNXSYSTM:00/ndbus0/region1/dax1.1/dax1.0"
    device.mkdir(parents=True)
    (device / "target_node").write_text("6\n")
    (root / "sys/bus/dax/devices").mkdir(parents=True)
    (root / "sys/bus/dax/devices/dax1.0").symlink_to("../../../devices/LNXSYSTM:00/ndbus0/region1/dax1.1/dax1.0")
    of_sys = import_machine([root])
    assert places(of_sys) == places(of_xml)
    assert places(of_sys)["node4"] == ("hbm", "socket1")
    assert places(of_sys)["node6"] == ("pmem", "socket1")
    assert sockets(of_sys) == sockets(of_xml) == {"socket0": 4, "socket1": 4}


def test_the_dram_of_processors_that_a_cgroup_hides_is_dram(tmp_path: Path) -> None:
    """Written on a machine of two sockets, inside a cgroup that has the first."""
    hidden = cpus(0, 0xF0)
    first = package(node(0, NEAR) + cores(0, 1, 2, 3), NEAR)
    found = import_machine(
        [written(tmp_path, xml(first, package(node(1, hidden), hidden), machine=cpus(0xF, 0xFF), more=TWO))]
    )
    assert places(found) == {"node0": ("dram", "socket0"), "node1": ("dram", "socket0")}
    assert "4 of 8 CPUs are not counted" in warned(found)
    assert "guess" not in warned(found)


def test_memory_of_processors_that_are_not_described_at_all_is_a_doubt_by_its_distance(tmp_path: Path) -> None:
    parts = [package(node(0, NEAR) + cores(0, 1, 2, 3), NEAR), node(1, cpus(0))]
    hidden = import_machine([written(tmp_path, xml(*parts, machine=cpus(0xF, 0xFF), more=TWO))])
    assert places(hidden)["node1"][0] == "cxl", "no other DRAM is as far away"
    three = [*parts, package(node(2, cpus(0x30)) + cores(4, 5), cpus(0x30))]
    alike = distances([0, 1, 2], [[10, 21, 21], [21, 10, 21], [21, 21, 10]])
    found = import_machine([written(tmp_path, xml(*three, machine=cpus(0x3F, 0xFF), more=alike))])
    assert places(found)["node1"][0] == "dram"
    assert "node 1 is taken for dram: a guess" in warned(found)


FLAT = {
    "/proc/cpuinfo": "processor\t: 0\nmodel name\t: {model}\n",
    "cpu/online": "0-3",
    "node/online": "0-3",
    "node/node0/cpulist": "0-1",
    "node/node1/cpulist": "2-3",
    "node/node2/cpulist": "",
    "node/node3/cpulist": "",
    "node/node0/distance": "10 21 13 23",
    "node/node1/distance": "21 10 23 13",
    "node/node2/distance": "13 23 10 23",
    "node/node3/distance": "23 13 23 10",
    **{f"node/node{number}/meminfo": size(number, 64) for number in range(4)},
}


def flat(folder: Path, model: str) -> Path:
    return sys_tree(folder, {path: text.format(model=model) for path, text in FLAT.items()})


@pytest.mark.parametrize(("model", "kind"), [("Intel(R) Xeon(R) CPU Max 9460", "hbm"), ("Some Server CPU", "cxl")])
def test_a_guess_about_a_kind_is_said_with_what_settles_it(tmp_path: Path, model: str, kind: str) -> None:
    found = import_machine([flat(tmp_path, model)])
    assert places(found)["node2"] == (kind, "socket0")
    assert places(found)["node3"] == (kind, "socket1")
    assert f"node 2 is taken for {kind}: a guess" in warned(found)
    assert f"--node 2={kind}" in warned(found)
    assert any(note.startswith(f"A guess: node2 is taken for {kind}") for note in found.machine.data["notes"])


def test_a_guess_that_somebody_settles_is_none(tmp_path: Path) -> None:
    found = import_machine([flat(tmp_path, "Some Server CPU")], nodes={2: "hbm", 3: "dram"})
    assert places(found)["node2"][0] == "hbm"
    assert places(found)["node3"][0] == "dram"
    assert "guess" not in warned(found)
    assert not any("guess" in note for note in found.machine.data.get("notes", []))


def test_memory_of_gpus_is_left_out_and_said(tmp_path: Path) -> None:
    gpu = node(9, cpus(0), 16, kind="GPUMemory", infos=info("PCIBusID", "0004:04:00.0"))
    of_xml = import_machine([written(tmp_path, xml(package(node(0, NEAR) + cores(0, 1), NEAR), gpu))])
    files = {
        "cpu/online": "0-1",
        "node/online": "0,250",
        "node/node0/cpulist": "0-1",
        "node/node0/meminfo": size(0, 16),
        "node/node250/cpulist": "",
        "node/node250/meminfo": size(250, 16),
        "/proc/driver/nvidia/gpus/0004:04:00.0/numa_status": "Node:      250\nStatus:    online\n",
    }
    of_sys = import_machine([sys_tree(tmp_path / "tree", files)])
    for found in (of_xml, of_sys):
        assert places(found) == {"node0": ("dram", "socket0")}
        assert "16 GiB of GPU memory are left out" in warned(found)
    wanted = import_machine([tmp_path / "tree"], nodes={250: "hbm"})
    assert places(wanted)["node250"][0] == "hbm"
    assert wanted.machine.data["memories"][1]["capacity_bytes"]["value"] == 16 << 30
    assert "GPU memory" not in warned(wanted)


def test_a_cache_in_front_of_a_memory_is_said_with_its_size(tmp_path: Path) -> None:
    cached = f'<object type="MemCache" {NEAR} cache_size="{8 << 30}">{node(0, NEAR)}</object>'
    of_xml = import_machine([written(tmp_path, xml(package(cached + cores(0, 1), NEAR)))])
    files = {
        "cpu/online": "0-1",
        "node/online": "0",
        "node/node0/cpulist": "0-1",
        "node/node0/meminfo": size(0, 16),
        "node/node0/memory_side_cache/index1/size": str(8 << 30),
    }
    of_sys = import_machine([sys_tree(tmp_path / "tree", files)])
    for found in (of_xml, of_sys):
        assert places(found)["node0"][0] == "dram"
        assert any("memory-side cache of 8 GiB" in note for note in found.machine.data["notes"])
        assert "node 0: behind a memory-side cache of 8 GiB" in warned(found)


def test_processors_of_a_node_without_memory_are_kept(tmp_path: Path) -> None:
    first = package(node(0, NEAR) + cores(0, 1, 2, 3), NEAR)
    second = package(node(1, FAR, None) + cores(4, 5, 6, 7), FAR)
    found = import_machine([written(tmp_path, xml(first, second, more=TWO))])
    assert places(found) == {"node0": ("dram", "socket0")}
    assert sockets(found) == {"socket0": 4, "socket1": 4}
    assert "distance 21 / 10" in distance_of(found, "socket1", "node0")


def test_sizes_that_a_file_leaves_out_are_given_by_hand(tmp_path: Path) -> None:
    both = package(node(0, NEAR, None) + cores(0, 1), NEAR) + package(node(1, FAR, None) + cores(4), FAR)
    file = written(tmp_path, xml(both))
    with pytest.raises(MachineError, match="--node 0=dram:64GiB --node 1=dram:64GiB"):
        import_machine([file])
    found = import_machine([file], nodes={0: "dram:32GiB", 1: "dram:8GiB"})
    assert [memory["capacity_bytes"]["value"] for memory in found.machine.data["memories"]] == [32 << 30, 8 << 30]


def test_cores_of_a_package_without_a_node_are_counted(tmp_path: Path) -> None:
    first = package(node(0, NEAR) + cores(0, 1, 2, 3), NEAR)
    second = package(cores(4, 5, 6), cpus(0x70), nodes=0b10)
    found = import_machine([written(tmp_path, xml(first, second, more=TWO))])
    assert sockets(found) == {"socket0": 4, "socket1": 3}
    assert "3 cores belong to no node" in warned(found)
    assert "distance 21 / 10" in distance_of(found, "socket1", "node0")
    given = import_machine([tmp_path / "machine.xml"], nodes={1: "dram:16GiB"})
    assert places(given)["node1"] == ("dram", "socket1")
    assert "belong to no node" not in warned(given)


SPARSE = {
    "cpu/online": "0-5",
    "cpu/cpu6/online": "0",
    "node/online": "0,2,33",
    "node/node0/cpulist": "0-1",
    "node/node2/cpulist": "2-3",
    "node/node33/cpulist": "4-6",
    "node/node0/distance": "10 12 14",
    "node/node2/distance": "12 10 16",
    "node/node33/distance": "14 16 10",
    **{f"node/node{number}/meminfo": size(number, 8) for number in (0, 2, 33)},
}


def test_rows_of_distances_belong_to_the_numbers_of_nodes(tmp_path: Path) -> None:
    found = import_machine([sys_tree(tmp_path, SPARSE)])
    assert "distance 16 / 10" in distance_of(found, "socket33", "node2")
    assert "distance 14 / 10" in distance_of(found, "socket0", "node33")
    assert sockets(found) == {"socket0": 2, "socket2": 2, "socket33": 2}
    assert "1 of 7 CPUs are not counted" in warned(found)


def test_a_row_that_counts_a_node_that_is_offline_is_read_right(tmp_path: Path) -> None:
    """The CPUs of node 0 link to it although it is offline."""
    files = {
        "cpu/online": "0-3",
        "cpu/cpu0/node0/uevent": "",
        "cpu/cpu2/node0/uevent": "",
        "node/online": "1",
        "node/node1/cpulist": "1,3",
        "node/node1/distance": "21 10",
        "node/node1/meminfo": size(1, 8),
    }
    found = import_machine([sys_tree(tmp_path, files)])
    assert sockets(found) == {"socket0": 2, "socket1": 2}
    assert "distance 21 / 10" in distance_of(found, "socket0", "node1")


def test_a_row_of_no_known_length_is_left_out_and_said(tmp_path: Path) -> None:
    found = import_machine([sys_tree(tmp_path, SPARSE | {"node/node2/distance": "12 10 16 20"})])
    assert "the distances of node 2 are left out" in warned(found)


OLD = {
    "/proc/cpuinfo": "".join(
        f"processor\t: {cpu}\nmodel name\t: Old CPU\nphysical id\t: 0\ncore id\t\t: {cpu % 4}\n\n" for cpu in range(8)
    ),
    "node/node0/cpumap": "00000000,0000000f\n\0",
    "node/node0/distance": "10 16\n\0",
    "node/node0/meminfo": size(0, 16),
    "node/node1/cpumap": "00000000,000000f0\n\0",
    "node/node1/distance": "16 10\n\0",
    "node/node1/meminfo": size(1, 16),
}


THREADS = {"cpu/online": "0-7\n\0"} | {
    f"cpu/cpu{cpu}/topology/{file}": text
    for cpu in range(8)
    for file, text in (("thread_siblings", f"{3 << cpu // 2 * 2:08x}\n\0"), ("core_id", f"{cpu // 2}\n\0"))
}
MODULES = THREADS | {f"cpu/cpu{cpu}/topology/core_id": f"{cpu}\n\0" for cpu in range(8)}


@pytest.mark.parametrize(
    ("more", "cores_each"),
    [
        ({}, 4),
        ({"node/online": "0-1\n\0"}, 4),
        ({"node/node0/cpulist": "0-3\n\0", "node/node1/cpulist": "4-7\n\0"}, 4),
        (THREADS, 2),
        (MODULES, 4),
    ],
    ids=["masks", "online", "lists", "threads", "modules"],
)
def test_a_tree_of_an_old_kernel_is_read(tmp_path: Path, more: dict[str, str], cores_each: int) -> None:
    """Masks without lists, NULs at their ends, no `node/online`, core ids that both dies of a package have."""
    found = import_machine([sys_tree(tmp_path, OLD | more)])
    assert sockets(found) == {"socket0": cores_each, "socket1": cores_each}
    assert places(found) == {"node0": ("dram", "socket0"), "node1": ("dram", "socket1")}
    assert "distance 16 / 10" in distance_of(found, "socket1", "node0")
    assert found.machine.data["sockets"][0]["cpu"] == "Old CPU"


def test_memory_nearest_to_processors_that_have_none_is_a_doubt(tmp_path: Path) -> None:
    files = {
        "cpu/online": "0-1",
        "node/online": "0-2",
        "node/node0/cpulist": "0-1",
        "node/node0/meminfo": size(0, 0),
        "node/node1/cpulist": "",
        "node/node1/meminfo": size(1, 64),
        "node/node2/cpulist": "",
        "node/node2/meminfo": size(2, 256),
        "node/node0/distance": "10 11 17",
        "node/node1/distance": "11 10 17",
        "node/node2/distance": "17 17 10",
    }
    found = import_machine([sys_tree(tmp_path, files)])
    assert {name: kind for name, (kind, _) in places(found).items()} == {"node1": "dram", "node2": "cxl"}
    assert "node 1 is taken for dram: a guess" in warned(found)


def test_the_cache_of_a_xeon_phi_is_read_where_it_was_dumped(tmp_path: Path) -> None:
    files = {
        "cpu/online": "0-1",
        "node/online": "0",
        "node/node0/cpulist": "0-1",
        "node/node0/meminfo": size(0, 16),
        "/var/run/hwloc/knl_memoryside_cache": f"version: 2\ncache_size: {4 << 30}\nmemory_mode: Cache\n",
    }
    found = import_machine([sys_tree(tmp_path, files)])
    assert any("memory-side cache of 4 GiB" in note for note in found.machine.data["notes"])


def test_nodes_that_all_list_the_same_cpus_are_dram(tmp_path: Path) -> None:
    """A firmware fault: the kernel says of each that the CPUs sit on it."""
    files = {"cpu/online": "0-1", "node/online": "0-1"}
    for number in (0, 1):
        files |= {f"node/node{number}/cpulist": "0-1", f"node/node{number}/meminfo": size(number, 2)}
    found = import_machine([sys_tree(tmp_path, files)])
    assert places(found) == {"node0": ("dram", "socket0"), "node1": ("dram", "socket0")}
    assert sockets(found) == {"socket0": 2}
