"""What ``cxl list`` of the ndctl project prints, as a sketch: the CXL memories of a machine and where they hang.

Its JSON is read in any nesting: memory devices (``-M``), regions (``-R``), and the nodes that regions became (``-X``).
Decoders (``-D``) say nothing that these do not. Latency, bandwidth, CPUs and DRAM are not in it: another source has
them, or they are given by hand, or assumed as for every other source.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tierloom.machine_formats.sketch import Known, Node, Sketch, Unplaced
from tierloom.machine_formats.texts import flaw, text_of
from tierloom.units import GIB, amount_in_bytes, count_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from tierloom.schema import WarningDoc

SOURCE = "cxl"
KIND = "cxl"
HEAD = 4096
"""Bytes in which such a file names something of its own."""
WORDS = ('"memdev"', '"memdevs"', '"region"', '"regions"', '"bus"', '"endpoint"')
MOST_BYTES = 1 << 60
"""No region is larger: an address of CXL has 52 bits."""
MOST_NODES = 1 << 10
"""Most that Linux is built for (``CONFIG_NODES_SHIFT``)."""
HUMAN = re.compile(r"(\d+(?:\.\d+)?) ([KMGTP]iB|B)\b")
"""A size under ``-u``: ``512.00 MiB (536.87 MB)``."""


@dataclass(frozen=True)
class Device:
    """A memory device: volatile bytes, and the node of the CPUs beside it."""

    ram_bytes: int
    home: int | None


@dataclass(frozen=True)
class Region:
    """Memory of one or several devices, and the node that it is, where that is told."""

    name: str
    bytes: int
    devices: Sequence[str]
    ways: int
    grain: int
    node: int | None
    unused: str
    """Why programs have none of it."""


def is_cxl_list(path: Path) -> bool:
    """Whether a file holds what ``cxl list`` prints."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        head = file.read(HEAD).decode(errors="replace").lstrip()
    return head.startswith(("[", "{")) and any(word in head for word in WORDS)


def read(path: Path) -> Sketch:
    """Reads the output of ``cxl list``.

    Raises:
        MachineError: It is no JSON, or a size or a node of it cannot be.
    """
    found = list(_tables(json.loads(text_of(path))))
    devices = {each["memdev"]: _device(each, path) for each in found if _is_device(each)}
    regions = [_region(each, devices, path) for each in found if _is_region(each)]
    sketch = Sketch(sources={SOURCE: f"cxl list, {path.name}"})
    used = [region for region in regions if not region.unused]
    sketch.unplaced = [_of_region(region, devices) for region in used]
    if not regions:
        sketch.unplaced = [_of_device(name, device) for name, device in devices.items() if device.ram_bytes]
        sketch.warnings += [_alone(list(devices))] if sketch.unplaced else []
    elif idle := [name for name, device in devices.items() if device.ram_bytes and not _is_in(name, used, devices)]:
        sketch.warnings.append(_idle(idle, sum(devices[name].ram_bytes for name in idle)))
    if not sketch.unplaced:
        raise flaw(path, "", "it lists no volatile CXL memory that is in use", "list it with `cxl list -M -R -X`")
    sketch.notes += map(_note, regions)
    return sketch


def _tables(value: object) -> Iterator[dict[str, Any]]:
    """All tables, however nested."""
    if isinstance(value, dict):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _tables(inner)


def _is_device(table: Mapping[str, Any]) -> bool:
    return isinstance(table.get("memdev"), str) and bool({"ram_size", "pmem_size"} & table.keys())


def _is_region(table: Mapping[str, Any]) -> bool:
    """A decoder names the region that it serves, too."""
    return isinstance(table.get("region"), str) and "size" in table and "decoder" not in table


def _device(table: Mapping[str, Any], path: Path) -> Device:
    name = table["memdev"]
    return Device(_bytes(table.get("ram_size", 0), path, f"{name}.ram_size"), _node(table.get("numa_node"), path, name))


def _region(table: Mapping[str, Any], devices: Mapping[str, Device], path: Path) -> Region:
    name = table["region"]
    mapped = [each["memdev"] for each in _tables(table.get("mappings", [])) if each.get("memdev") in devices]
    ways = int(table.get("interleave_ways", 1))
    names = sorted(mapped) or (list(devices) if len(devices) == ways else [])
    targets = [each["target_node"] for each in _tables(table.get("daxregion", {})) if "target_node" in each]
    volatile = not names or any(devices[each].ram_bytes for each in names)
    kind = table.get("type", "ram" if volatile else "pmem")
    return Region(
        name=name,
        bytes=_bytes(table["size"], path, f"{name}.size"),
        devices=names,
        ways=ways,
        grain=int(table.get("interleave_granularity", 0)),
        node=_node(targets[0], path, name) if targets else None,
        unused=f"it is {kind}" if kind != "ram" else _off(table),
    )


def _off(table: Mapping[str, Any]) -> str:
    is_on = table.get("decode_state", "commit") == "commit" and table.get("state") != "disabled"
    return "" if is_on else "it is disabled"


def _bytes(value: object, path: Path, where: str) -> int:
    human = HUMAN.match(value) if isinstance(value, str) else None
    amount = amount_in_bytes(human[1] + human[2], 0) if human else value
    if isinstance(amount, bool) or not isinstance(amount, int) or not 0 <= amount <= MOST_BYTES:
        raise flaw(path, where, f"`{str(value)[:40]}` is no size", "give the list as `cxl list` printed it")
    return amount


def _node(value: object, path: Path, where: str) -> int | None:
    """A node; none where the kernel does not tell, which is -1."""
    if value is None or value == -1:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < MOST_NODES:
        raise flaw(path, where, f"`{str(value)[:40]}` is no node", "give the list as `cxl list` printed it")
    return value


def _of_region(region: Region, devices: Mapping[str, Device]) -> Unplaced:
    home = next((devices[name].home for name in region.devices if devices[name].home is not None), None)
    return Unplaced(_memory(region.bytes, home, f"size of {region.name}"), region.node)


def _of_device(name: str, device: Device) -> Unplaced:
    return Unplaced(_memory(device.ram_bytes, device.home, f"ram_size of {name}"), None)


def _memory(size: int, home: int | None, how: str) -> Node:
    kind = Known(KIND, "derived", SOURCE, "cxl list has it")
    return Node(kind=kind, capacity_bytes=Known(size, "measured", SOURCE, how), home=home)


def _is_in(name: str, regions: Sequence[Region], devices: Mapping[str, Device]) -> bool:
    """Whether a device is in a region; in any, where none says which are in it."""
    told = {each for region in regions for each in region.devices}
    return name in told if told or not regions else len(devices) > 0


def _note(region: Region) -> str:
    spread = (
        f", interleaved over {count_text(region.ways, 'device')} by {region.grain} bytes" if region.ways > 1 else ""
    )
    if region.unused:
        return f"CXL {region.name}: {region.bytes / GIB:g} GiB{spread}; left out, for {region.unused}."
    assumed = "; a bandwidth that is assumed is that of one" if region.ways > 1 else ""
    return f"CXL {region.name}: {region.bytes / GIB:g} GiB{spread}{assumed}."


def _alone(names: Sequence[str]) -> WarningDoc:
    return {
        "what": f"each CXL device ({', '.join(names)}) is taken for a node of its own",
        "cause": "no region is listed, and the kernel makes a node of a device only when it is in one",
        "remedy": "list regions, too (cxl list -M -R -X), or make one: cxl create-region",
    }


def _idle(names: Sequence[str], size: int) -> WarningDoc:
    return {
        "what": f"{size / GIB:g} GiB of CXL memory ({', '.join(names)}) are in no region that is in use",
        "cause": "the kernel makes a node of a CXL device only when a region is created and onlined",
        "remedy": "cxl create-region, then daxctl reconfigure-device --mode=system-ram",
    }
