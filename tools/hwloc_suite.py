"""Tries every XML file and every tree of hwloc's own tests: read as lstopo reads it, or refused for a reason.

Usage: .venv/bin/python tools/hwloc_suite.py FOLDER [LSTOPO]

FOLDER holds hwloc's `tests/hwloc` (`apt-get source hwloc`, or a clone), outside this repository; whatever ends in
`.xml`, `.tar.bz2` or `.tar.gz` below it is tried. LSTOPO is the program to compare with, `lstopo-no-graphics` by
default; one of the same version reads them all. Compared are sockets, cores, nodes, sizes, memory-side caches, and
kinds where lstopo prints them. Ends with the counts, and with 1 where a machine differs or a refusal has no reason that
we know.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tierloom.errors import MachineError
from tierloom.machine_formats import Imported, import_machine
from tierloom.machine_formats.hwloc import KINDS

if TYPE_CHECKING:
    from collections.abc import Iterator

ENDINGS = (".xml", ".tar.bz2", ".tar.gz")
GIVEN = 1 << 30
"""Size of nodes whose file has none."""
UNITS = {"": 1, "B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
UNITS |= {"TB": 1 << 40, "TiB": 1 << 40}
REASONS = {
    "is not version 2 or later": "XML of hwloc 1",
    "there is no NUMANode": "no memory is described",
    "holds no machine's sys/devices/system": "no memory is described",
    "no memory node is described there": "no memory is described",
}
"""Refusals that hold."""
EXPLAINED = {
    "8em64t-2s2ca2c-buggynuma.tar.bz2": "all eight nodes list all CPUs, and hwloc drops seven of them",
    "fakeheterocpunuma.tar.bz2": "nodes list CPUs of others, and hwloc drops them; the XML of the same machine has all",
}
"""Where hwloc itself does without what the kernel tells."""
LINE = re.compile(
    r"(?P<indent> *)(?P<kind>[A-Za-z]\w*)(?:\((?P<sub>[^)]*)\))?(?: L#\d+)?(?: \((?P<told>.*)\))?$", re.DOTALL
)


@dataclass
class Machine:
    """What is compared."""

    sockets: int = 0
    cores: int = 0
    sizes: dict[int, float] = field(default_factory=dict)
    units: dict[int, int] = field(default_factory=dict)
    """What each size is rounded to."""
    kinds: dict[int, str] = field(default_factory=dict)
    """Where they are told."""
    caches: int = 0


@dataclass
class Object:
    """A line of lstopo with what is below it."""

    kind: str
    sub: str
    told: str
    below: list[Object] = field(default_factory=list)


def main(folder: Path, lstopo: str) -> int:
    """Tries all files; returns the exit status."""
    files = sorted(path for path in folder.rglob("*") if path.name.endswith(ENDINGS) and path.is_file())
    counts: Counter[str] = Counter()
    for file in files:
        verdict, words = tried(file, lstopo)
        counts[verdict] += 1
        if words:
            print(f"{verdict}: {file.relative_to(folder)}: {words}")  # noqa: T201 (a tool's answer)
    print(f"{len(files)} files: " + ", ".join(f"{number} {what}" for what, number in sorted(counts.items())))  # noqa: T201
    return 1 if counts["different"] or counts["refused without a known reason"] else 0


def tried(file: Path, lstopo: str) -> tuple[str, str]:
    """What became of one file, and in words where that is worth reading."""
    try:
        found = imported(file)
    except MachineError as problem:
        told = str(problem).partition("\n")[0]
        known = next((why for part, why in REASONS.items() if part in told), None)
        return (f"refused ({known})", "") if known else ("refused without a known reason", told)
    printed = console(file, lstopo)
    if isinstance(printed, str):
        return "read, and not by this lstopo", printed
    ours, theirs = of_ours(found), of_theirs(printed)
    unlike = differences(ours, theirs)
    if unlike and file.name in EXPLAINED:
        return "unlike lstopo, explained", f"{'; '.join(unlike)} ({EXPLAINED[file.name]})"
    return ("different", "; ".join(unlike)) if unlike else ("as lstopo", "")


def imported(file: Path) -> Imported:
    """The machine; sizes that the file leaves out are given."""
    given: dict[int, str] = {}
    while True:
        try:
            return import_machine([file], "tried", nodes=given)
        except MachineError as problem:
            asked = [int(number) for number in re.findall(r"--node (\d+)=", str(problem))]
            if not asked or "how large" not in str(problem) or set(asked) <= set(given):
                raise
            given |= dict.fromkeys(asked, f"dram:{GIVEN}B")


def of_ours(found: Imported) -> Machine:
    """What was imported."""
    data = found.machine.data
    machine = Machine(len(data["sockets"]), sum(int(socket["cores"]["value"]) for socket in data["sockets"]))
    for memory in data["memories"]:
        number = int(memory["name"].removeprefix("node"))
        if memory["capacity_bytes"]["kind"] != "assumed":
            machine.sizes[number] = memory["capacity_bytes"]["value"]
        machine.kinds[number] = memory["kind"]
    machine.caches = sum("memory-side cache" in note for note in data.get("notes", []))
    return machine


def of_theirs(root: Object) -> Machine:
    """What lstopo printed."""
    machine = Machine()
    everything = list(walked(root))
    for node in everything:
        if node.kind == "NUMANode" and node.sub != "GPUMemory" and (size := printed_size(node)):
            number = int(attribute(node, r"P#(\d+)"))
            machine.sizes[number], machine.units[number] = size
            if node.sub.lower() in KINDS:
                machine.kinds[number] = KINDS[node.sub.lower()]
        machine.caches += "MemCache" in node.kind or node.sub == "MemorySideCache"
    leaf = "Core" if any(node.kind == "Core" for node in everything) else "PU"
    machine.cores = sum(node.kind == leaf for node in everything)
    machine.sockets = len(localities(root, leaf, None, in_memory=False))
    return machine


def localities(node: Object, leaf: str, home: int | None, *, in_memory: bool) -> set[int | None]:
    """The innermost objects with memory, or else packages, that cores are below."""
    of_nodes = any(holds_node(child) for child in node.below)
    if of_nodes or (node.kind == "Package" and not in_memory):
        home, in_memory = id(node), of_nodes
    found = {home} if node.kind == leaf else set()
    return found.union(*(localities(child, leaf, home, in_memory=in_memory) for child in node.below))


def holds_node(node: Object) -> bool:
    """Whether it is memory of the object around it."""
    return node.kind == "NUMANode" or (node.kind == "MemCache" and any(map(holds_node, node.below)))


def walked(node: Object) -> Iterator[Object]:
    """An object and all below it."""
    yield node
    for child in node.below:
        yield from walked(child)


def attribute(node: Object, pattern: str) -> str:
    """A group of a pattern in what is told of an object; empty where it is not there."""
    found = re.search(pattern, node.told)
    return found[1] if found else ""


def printed_size(node: Object) -> tuple[float, int] | None:
    """Bytes of `local=370GiB`, and of its unit."""
    found = re.search(r"\blocal=(\d+)([A-Za-z]*)", node.told)
    return (float(found[1]) * UNITS[found[2]], UNITS[found[2]]) if found else None


def differences(ours: Machine, theirs: Machine) -> list[str]:
    """In words."""
    told: dict[str, tuple[Any, Any]] = {"sockets": (ours.sockets, theirs.sockets), "cores": (ours.cores, theirs.cores)}
    told["memory-side caches"] = (ours.caches, theirs.caches)
    if theirs.sizes:
        told["nodes"] = (sorted(ours.sizes), sorted(theirs.sizes))
    found = [f"{what} {mine}, lstopo {its}" for what, (mine, its) in told.items() if mine != its]
    for number in sorted(ours.sizes.keys() & theirs.sizes.keys()):
        mine, its = ours.sizes[number], theirs.sizes[number]
        if abs(mine - its) > 0.51 * theirs.units[number]:
            found.append(f"node {number} of {mine:g} bytes, lstopo {its:g}")
    unlike = [number for number, kind in theirs.kinds.items() if ours.kinds.get(number) != kind]
    return [*found, *(f"node {number} {ours.kinds.get(number)}, lstopo {theirs.kinds[number]}" for number in unlike)]


def console(file: Path, lstopo: str) -> Object | str:
    """What lstopo prints of a file, or why it does not."""
    with opened(file) as (words, environment):
        command = [lstopo, "--of", "console", "-v", "--no-io", "--disallowed", "--no-collapse", *words]
        variables = {**os.environ, "LC_ALL": "C", **environment}
        done = subprocess.run(command, capture_output=True, env=variables, stdin=subprocess.DEVNULL, check=False)
    # As bytes: names of boards hold other ends of lines.
    root = parsed(done.stdout.decode(errors="replace")) if done.returncode == 0 else None
    return root or (done.stderr.decode(errors="replace").strip().splitlines() or ["it printed nothing"])[-1]


@contextmanager
def opened(file: Path) -> Iterator[tuple[list[str], dict[str, str]]]:
    """Options and environment that make lstopo read a file."""
    if file.suffix == ".xml":
        yield ["-i", str(file)], {}
        return
    with tempfile.TemporaryDirectory(prefix="hwloc-suite-") as folder:
        with tarfile.open(file) as archive:
            archive.extractall(folder, filter="data")
        root = next(Path(folder).glob("*/sys"), Path(folder) / "none").parent
        yield (
            [],
            {"HWLOC_COMPONENTS": "linux,stop", "HWLOC_FSROOT": str(root), "HWLOC_DUMPED_HWDATA_DIR": "/var/run/hwloc"},
        )


def parsed(text: str) -> Object | None:
    """The tree of lstopo's lines; depth is the indent."""
    above: list[tuple[int, Object]] = []
    lines = text.split("\n")
    first = next((at for at, line in enumerate(lines) if line.startswith("Machine")), len(lines))
    for line in lines[first:]:
        found = LINE.fullmatch(line)
        if not found:
            continue
        node = Object(found["kind"], found["sub"] or "", found["told"] or "")
        depth = len(found["indent"])
        while above and above[-1][0] >= depth:
            if len(above) == 1:
                return above[0][1]
            above.pop()
        if above:
            above[-1][1].below.append(node)
        above.append((depth, node))
    return above[0][1] if above else None


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    sys.exit(main(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "lstopo-no-graphics"))
