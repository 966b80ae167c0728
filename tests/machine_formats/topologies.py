"""Small topologies for tests: hwloc's XML and `/sys` of made-up machines, written from a few words each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tierloom.machine_formats import Imported

GIB = 1 << 30


def xml(*packages: str, more: str = "", machine: str = "") -> str:
    """A topology of these packages (see `package`); `more` follows the objects."""
    inside = "".join(packages)
    return (
        f'<topology version="2.0"><object type="Machine" os_index="0" {machine or cpus(0xFF)}>{inside}</object>'
        f"{more}</topology>"
    )


def package(inside: str, sets: str, model: str = "Some Server CPU", nodes: int = 0) -> str:
    told = f'complete_nodeset="{nodes:#x}"' if nodes else ""
    return f'<object type="Package" {sets} {told}><info name="CPUModel" value="{model}"/>{inside}</object>'


def cores(*numbers: int) -> str:
    return "".join(f'<object type="Core" os_index="{number}" {cpus(1 << number)}/>' for number in numbers)


def cpus(usable: int, everyone: int | None = None) -> str:
    return f'cpuset="{usable:#x}" complete_cpuset="{usable if everyone is None else everyone:#x}"'


def node(number: int, sets: str, gib: int | None = 16, *, kind: str = "", infos: str = "") -> str:
    """A NUMA node; its gp_index is 100 more than its number."""
    size = f'local_memory="{gib * GIB}"' if gib else ""
    told = f'subtype="{kind}"' if kind else ""
    head = f'<object type="NUMANode" os_index="{number}" gp_index="{100 + number}"'
    return f"{head} {sets} {size} {told}>{infos}</object>"


def info(name: str, value: str) -> str:
    return f'<info name="{name}" value="{value}"/>'


def attribute(name: str, *values: tuple[int, int, int]) -> str:
    """A memory attribute: node, value, CPUs of the initiator."""
    told = "".join(
        f'<memattr_value target_obj_type="NUMANode" target_obj_gp_index="{100 + number}" value="{value}" '
        f'initiator_cpuset="{initiators:#x}"/>'
        for number, value, initiators in values
    )
    return f'<memattr name="{name}" flags="5">{told}</memattr>'


def distances(numbers: list[int], rows: list[list[int]]) -> str:
    indexes = " ".join(map(str, numbers))
    values = " ".join(str(value) for row in rows for value in row)
    return (
        f'<distances2 type="NUMANode" name="NUMALatency" indexing="os"><indexes>{indexes}</indexes>'
        f"<u64values>{values}</u64values></distances2>"
    )


def written(folder: Path, text: str) -> Path:
    file = folder / "machine.xml"
    file.write_text(text)
    return file


def sys_tree(folder: Path, files: dict[str, str]) -> Path:
    """Files below `sys/devices/system` (or from the root, with a leading `/`)."""
    for path, content in files.items():
        file = folder / (path.lstrip("/") if path.startswith("/") else f"sys/devices/system/{path}")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
    return folder


def size(number: int, gib: int) -> str:
    return f"Node {number} MemTotal: {gib << 20} kB\n"


def places(found: Imported) -> dict[str, tuple[str, str]]:
    """Kind and socket of each memory."""
    return {memory["name"]: (memory["kind"], memory["socket"]) for memory in found.machine.data["memories"]}


def sockets(found: Imported) -> dict[str, int]:
    """Cores of each socket."""
    return {socket["name"]: int(socket["cores"]["value"]) for socket in found.machine.data["sockets"]}


def warned(found: Imported) -> str:
    return "\n".join(f"{warning['what']} | {warning['cause']} | {warning['remedy']}" for warning in found.warnings)


def distance_of(found: Imported, start: str, end: str) -> Any:
    """The idle latency's own words, which name the distance."""
    return next(p for p in found.machine.data["paths"] if (p["from"], p["to"]) == (start, end))["idle_ns"].get(
        "how", ""
    )
