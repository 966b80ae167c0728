"""The memory nodes of a tree of ``/sys``: CPUs, sizes, distances, firmware's figures, devices behind them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tierloom.machine_formats.sketch import Known
from tierloom.machine_formats.sys_tree import CPU, NODE
from tierloom.machine_formats.topology import Figure, MemoryNode, bits

if TYPE_CHECKING:
    from tierloom.machine_formats.sys_tree import Tree
    from tierloom.machine_formats.topology import Topology
    from tierloom.schema import WarningDoc

SOURCE = "sysfs"
DAX = "sys/bus/dax/devices"
NVIDIA = "proc/driver/nvidia/gpus"
KNL = "var/run/hwloc/knl_memoryside_cache"
FIGURES = {
    "read_latency": ("idle_ns", 1.0),
    "read_bandwidth": ("read_gb_s", 1e-3),
    "write_bandwidth": ("write_gb_s", 1e-3),
}
"""Files of an access class (Documentation/admin-guide/mm/numaperf.rst): ns and MB/s."""


def fill(topology: Topology, tree: Tree, homes: frozenset[int]) -> None:
    """Adds the nodes and what firmware says of them.

    Args:
        topology: Is filled.
        tree: Is read.
        homes: Nodes that CPUs link to, those among them that are not online.

    Raises:
        MachineError: A file of the tree is damaged.
    """
    numbers = tree.online_nodes()
    for number in numbers:
        topology.nodes[number] = _node(tree, number, alone=len(numbers) == 1)
    for number in numbers:
        _figures(topology, tree, number)
        _distances(topology, tree, number, homes)
    devices = _dax(tree)
    gpus = _gpus(tree)
    for number, node in topology.nodes.items():
        node.dax = "" if node.cpus else devices.get(number, "")
        node.gpu = gpus.get(number, "")


def _node(tree: Tree, number: int, *, alone: bool) -> MemoryNode:
    folder = f"{NODE}/node{number}"
    cpus = tree.cpus(f"{folder}/cpulist", f"{folder}/cpumap")
    if alone and not (tree.root / folder).is_dir():
        cpus = tree.online_cpus()
    # Links to the CPUs of a node outlive their going offline; the list has only those that are online.
    linked = bits(tree.names(folder, r"cpu(\d{1,5})"))
    node = MemoryNode(cpus, cpus | linked, own=bool(cpus | linked))
    size = _bytes(tree, folder, alone=alone)
    node.bytes = None if size is None else Known(size, "measured", SOURCE, "MemTotal of the node")
    node.side_cache_bytes = _side_caches(tree, folder) or (_dumped_cache(tree) if node.own else 0)
    return node


def _bytes(tree: Tree, folder: str, *, alone: bool) -> int | None:
    """None where a node is there and its size is not."""
    text = tree.text(f"{folder}/meminfo")
    if text is None and alone:
        text = tree.text("proc/meminfo")
    if text is None:
        return None if (tree.root / folder).is_dir() or tree.names(CPU, r"cpu(\d{1,5})") else 0
    found = re.search(r"MemTotal:[ \t]*(\d{1,15})", text)
    return int(found[1]) * 1024 if found else None


def _side_caches(tree: Tree, folder: str) -> int:
    levels = tree.names(f"{folder}/memory_side_cache", r"index(\d{1,2})")
    return sum(tree.count(f"{folder}/memory_side_cache/index{level}/size") or 0 for level in levels)


def _dumped_cache(tree: Tree) -> int:
    """That of a Xeon Phi, which firmware's tables have and the kernel has not: ``hwloc-dump-hwdata`` writes it down."""
    found = re.search(r"^cache_size:\s*(\d{1,13})\s*$", tree.text(KNL) or "", re.MULTILINE)
    return int(found[1]) if found else 0


def _figures(topology: Topology, tree: Tree, end: int) -> None:
    """Access class 1, the nearest initiators with CPUs, else class 0, the nearest of all."""
    for group in (1, 0):
        folder = f"{NODE}/node{end}/access{group}/initiators"
        starts = [number for number in tree.names(folder, r"node(\d{1,5})") if number in topology.nodes]
        if not (tree.root / folder).is_dir():
            continue
        cpus = 0
        for start in starts:
            cpus |= topology.nodes[start].all_cpus
        for file, (key, unit) in FIGURES.items():
            if value := tree.count(f"{folder}/{file}"):
                known = Known(value * unit, "published", SOURCE, f"HMAT or CDAT, access class {group}")
                topology.figures.append(Figure(key, cpus, end, known))
        topology.nodes[end].initiators |= cpus
        return


def _distances(topology: Topology, tree: Tree, number: int, homes: frozenset[int]) -> None:
    """One row: the way from a memory, taken to be that to it as well, as matrices are symmetric."""
    path = f"{NODE}/node{number}/distance"
    text = tree.text(path)
    if not text:
        return
    words = text.split()
    if not all(re.fullmatch(r"\d{1,9}", word) for word in words):
        raise tree.damaged(path, text, "a line of distances such as `10 21`")
    lists = [sorted(topology.nodes), sorted(homes | {*topology.nodes}), tree.names(NODE, r"node(\d{1,5})")]
    columns = _columns([*lists, tree.numbers(f"{NODE}/possible") or []], number, [int(word) for word in words])
    if columns is None:
        topology.warnings.append(_no_columns(number, len(words)))
        return
    for other, word in zip(columns, words, strict=True):
        if 0 < int(word) < 256:
            topology.distances[other, number] = int(word)


def _columns(lists: list[list[int]], number: int, row: list[int]) -> list[int] | None:
    """The nodes of a row: those that are online first, or more where it tells of some that are not.

    A node's own column holds the least of its row, which tells the right list from another of the same length.
    """
    for columns in lists:
        if len(columns) == len(row) and number in columns and row[columns.index(number)] == min(row):
            return columns
    return lists[0] if len(lists[0]) == len(row) else None


def _no_columns(number: int, length: int) -> WarningDoc:
    return {
        "what": f"the distances of node {number} are left out",
        "cause": f"{length} of them stand in its row, and no list of nodes of this tree has as many",
        "remedy": "record the machine's /sys again",
    }


def _dax(tree: Tree) -> dict[int, str]:
    """What a node was onlined from, by its number: where in the tree of devices the DAX device is says what it is."""
    folder = tree.root / DAX
    found = {}
    for device in sorted(folder.iterdir()) if folder.is_dir() else []:
        number = tree.count(f"{DAX}/{device.name}/target_node")
        if number is not None:
            found[number] = _device(tree, str(device.readlink()) if device.is_symlink() else "")
    return found


def _device(tree: Tree, place: str) -> str:
    if "/ndbus" in place:
        return "pmem"
    if "hmem" in place:
        return "reserved"
    if "decoder" in place or "dax_region" in place or tree.names("sys/bus/cxl/devices", r"region(\d{1,5})"):
        return "cxl"
    return "pmem" if tree.names("sys/bus/nd/devices", r"region(\d{1,5})") else "unknown"


def _gpus(tree: Tree) -> dict[int, str]:
    """The GPU of each node that is one's memory, as NVIDIA's driver tells it."""
    folder = tree.root / NVIDIA
    found = {}
    for gpu in sorted(folder.iterdir()) if folder.is_dir() else []:
        told = re.search(r"Node:\s*(\d{1,5})\b", tree.text(f"{NVIDIA}/{gpu.name}/numa_status") or "")
        if told:
            found[int(told[1])] = f"GPU {gpu.name}"
    return found
