"""What `cxl list` prints: CXL memories by region, flat or nested, and which node each is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support import Tierloom

from tierloom import Machine
from tierloom.errors import MachineError
from tierloom.machine_formats import Imported, import_machine, to_hwloc

GIB = 1 << 30
DRAM = {0: "dram:256GiB"}


def device(name: str, **of: object) -> dict[str, Any]:
    return {"memdev": name, "ram_size": 128 * GIB, "serial": 0, "numa_node": 0, "host": "0000:d3:00.0", **of}


def region(name: str = "region0", *devices: str, **of: object) -> dict[str, Any]:
    mappings = [{"position": at, "memdev": each, "decoder": f"decoder{at}.0"} for at, each in enumerate(devices)]
    return {
        "region": name,
        "resource": 825975898112,
        "size": 128 * GIB * max(1, len(devices)),
        "type": "ram",
        "interleave_ways": max(1, len(devices)),
        "interleave_granularity": 256,
        "decode_state": "commit",
        "mappings": mappings,
        **of,
    }


def onlined(node: int) -> dict[str, Any]:
    """What `-X` adds to a region."""
    chardev = {"chardev": "dax0.0", "size": 128 * GIB, "target_node": node, "align": 2097152, "mode": "system-ram"}
    return {"id": 0, "size": 128 * GIB, "align": 2097152, "devices": [chardev]}


def listed(folder: Path, *tables: object) -> Path:
    file = folder / "cxl.json"
    file.write_text(json.dumps(list(tables), indent=2))
    return file


def imported(file: Path, **more: Any) -> Imported:
    return import_machine([file], **{"cores": 32, "nodes": DRAM, **more})


def memories(found: Imported) -> dict[str, tuple[str, str, int]]:
    data = found.machine.data["memories"]
    return {each["name"]: (each["kind"], each["socket"], each["capacity_bytes"]["value"] // GIB) for each in data}


def test_a_region_over_two_devices_is_one_memory(tmp_path: Path) -> None:
    decoder = {"decoder": "decoder0.0", "region": "region0", "size": 256 * GIB, "interleave_ways": 2}
    devices = [device("mem0"), device("mem1")]
    file = listed(
        tmp_path, {"memdevs": devices}, {"decoders": [decoder]}, {"regions": [region("region0", "mem0", "mem1")]}
    )
    found = imported(file)
    assert memories(found) == {"node0": ("dram", "socket0", 256), "node1": ("cxl", "socket0", 256)}
    size = found.machine.data["memories"][1]["capacity_bytes"]
    assert (size["kind"], size["how"]) == ("measured", "size of region0")
    assert "interleaved over 2 devices by 256 bytes" in found.machine.data["notes"][0]
    [assumed] = [each["what"] for each in found.warnings]
    assert assumed.startswith("node 1 (cxl): assumed latency (251 ns"), "it tells neither latency nor bandwidth"


def test_a_list_with_everything_nested_is_read_alike(tmp_path: Path) -> None:
    decoder = {"decoder": "decoder5.0", "region": "region0", "size": 128 * GIB, "interleave_ways": 1, "mode": "ram"}
    endpoint = {"endpoint": "endpoint5", "host": "mem0", "memdev": device("mem0"), "decoders:endpoint5": [decoder]}
    root = {"decoder": "decoder0.0", "size": 128 * GIB, "regions:decoder0.0": [region("region0", "mem0")]}
    bus = {"bus": "root0", "ports:root0": [{"port": "port1", "endpoints:port1": [endpoint]}], "decoders:root0": [root]}
    flat = imported(listed(tmp_path, {"memdevs": [device("mem0")]}, {"regions": [region("region0", "mem0")]}))
    nested = imported(listed(tmp_path, bus))
    assert memories(nested) == memories(flat) == {"node0": ("dram", "socket0", 256), "node1": ("cxl", "socket0", 128)}
    assert nested.machine.data["notes"] == flat.machine.data["notes"]


def test_the_node_of_a_region_counts_where_it_is_told(tmp_path: Path) -> None:
    far = device("mem1", numa_node=1)
    regions = [region("region0", "mem0", daxregion=onlined(3)), region("region1", "mem1", daxregion=onlined(2))]
    file = listed(tmp_path, {"memdevs": [device("mem0"), far]}, {"regions": regions})
    found = imported(file, nodes={0: "dram:256GiB", 1: "dram:256GiB"})
    assert memories(found) == {
        "node0": ("dram", "socket0", 256),
        "node1": ("dram", "socket1", 256),
        "node2": ("cxl", "socket1", 128),
        "node3": ("cxl", "socket0", 128),
    }


def test_a_memory_that_another_source_has_is_that_one(tmp_path: Path) -> None:
    (tmp_path / "liu-a.xml").write_text(to_hwloc(Machine.load("liu-a")))
    file = listed(tmp_path, device("mem0", numa_node=1), region("region0", "mem0"))
    for order in ([tmp_path / "liu-a.xml", file], [file, tmp_path / "liu-a.xml"]):
        found = import_machine(order)
        kinds = {name: kind for name, (kind, _, _) in memories(found).items()}
        assert kinds == {"rdram": "dram", "ldram": "dram", "cxl": "cxl"}
    larger = listed(tmp_path, device("mem0"), region("region0", "mem0", size=512 * GIB))
    assert memories(import_machine([tmp_path / "liu-a.xml", larger]))["node3"][2] == 512, "none is so large"


def test_devices_alone_are_memories_and_that_is_a_guess(tmp_path: Path) -> None:
    found = imported(listed(tmp_path, device("mem0"), device("mem1"), device("mem2", ram_size=0, pmem_size=GIB)))
    assert [kind for kind, _, _ in memories(found).values()] == ["dram", "cxl", "cxl"]
    assert "each CXL device (mem0, mem1, mem2) is taken for a node of its own" in [
        each["what"] for each in found.warnings
    ]


@pytest.mark.parametrize(
    ("unused", "why"),
    [
        ({"type": "pmem"}, "it is pmem"),
        ({"decode_state": "reset"}, "it is disabled"),
        ({"state": "disabled"}, "it is disabled"),
    ],
    ids=["pmem", "reset", "disabled"],
)
def test_a_region_that_programs_have_nothing_of_is_left_out(tmp_path: Path, unused: dict[str, str], why: str) -> None:
    used, other = region("region0", "mem0"), region("region1", "mem1", **unused)
    found = imported(listed(tmp_path, device("mem0"), device("mem1"), used, other))
    assert list(memories(found)) == ["node0", "node1"]
    assert any(note.endswith(f"left out, for {why}.") for note in found.machine.data["notes"])
    assert any("128 GiB of CXL memory (mem1) are in no region" in each["what"] for each in found.warnings)
    with pytest.raises(MachineError, match=r"cxl.json: it lists no volatile CXL memory that is in use\nhint: "):
        imported(listed(tmp_path, device("mem1"), other))


def test_sizes_for_people_and_nodes_that_nobody_knows_are_read(tmp_path: Path) -> None:
    human = region("region0", "mem0", size="128.00 GiB (137.44 GB)", resource="0xc90000000")
    found = imported(listed(tmp_path, device("mem0", numa_node=-1, ram_size="128.00 GiB (137.44 GB)"), human))
    assert memories(found)["node1"] == ("cxl", "socket0", 128)


def test_what_it_does_not_tell_is_asked_for(tmp_path: Path, tierloom: Tierloom) -> None:
    file = listed(tmp_path, device("mem0"), region("region0", "mem0"))
    with pytest.raises(MachineError, match=r"no source tells how many cores node 0 has\nhint: .*--cores 32"):
        import_machine([file])
    told = tierloom("machine", "import", str(file), "--cores", "8", "-o", str(tmp_path / "made.toml"))
    assert told.exit_code == 0, told.stderr
    assert "no memory but that on CXL" in told.stderr
    assert "--node 0=dram:64GiB" in told.stderr


@pytest.mark.parametrize(
    ("tables", "problem"),
    [
        ([device("mem0", ram_size=-5)], "mem0.ram_size: `-5` is no size"),
        ([region(size="much")], "region0.size: `much` is no size"),
        ([device("mem0", numa_node="near")], "mem0: `near` is no node"),
        ([region(daxregion=onlined(99999))], "region0: `99999` is no node"),
        ([region(interleave_ways="two")], "no machine"),
    ],
    ids=["size", "words", "node", "target", "ways"],
)
def test_what_cannot_be_is_said_with_its_place(tmp_path: Path, tables: list[object], problem: str) -> None:
    with pytest.raises(MachineError) as raised:
        imported(listed(tmp_path, *tables))
    assert "cxl.json: " in str(raised.value)
    assert problem in str(raised.value)
    assert "\nhint: " in str(raised.value)
