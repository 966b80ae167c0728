"""The truth: every load and store of one run, by object, counted under Valgrind by `valgrind/objects.c`."""

import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from .program import Program
from .statics import REST, Static, statics
from .tool import built

WIDTHS = (1, 2, 4, 8, 16, 32, 64, 10)
KINDS = {"h": "heap", "m": "mmap", "s": "static"}
LUMPS = {"b": "[small objects]", "a": "[small objects]", "t": REST, "k": "[stack]", "-": "[elsewhere]"}
SHIM = "allocations.so"


@dataclass(frozen=True)
class Truth:
    """An object and how often it is touched."""

    kind: str
    """`heap`, `mmap` or `static`; `lump` for what is told apart by nobody."""
    name: str
    bytes: int
    blocks: int
    stack: tuple[tuple[str, int], ...]
    """Module and offset of the return addresses of its allocation, innermost first."""
    reads: int
    writes: int
    read_bytes: int
    write_bytes: int
    lines_into_first: int = 0
    """Lines that the first level of simulated caches did not have."""
    lines_from_memory: int = 0
    """Lines that no level had."""

    @classmethod
    def read(cls, path: Path) -> list[Self]:
        """From a file of them."""
        found = json.loads(path.read_text())
        return [cls(**one | {"stack": tuple((module, at) for module, at in one["stack"])}) for one in found]

    @property
    def accesses(self) -> int:
        """Loads and stores."""
        return self.reads + self.writes


def frames(words: list[str]) -> tuple[tuple[str, int], ...]:
    """A call stack without the library that was preloaded; Valgrind means the byte before a return address."""
    places = [word.rpartition("+") for word in words]
    return tuple((Path(path).name, int(at, 16) + 1) for path, _, at in places if Path(path).name != SHIM)


def parsed(line: str, known: list[Static]) -> Truth:
    """A line of the tool's report."""
    what, number, blocks, size, *rest = line.split()
    words, lines, stack = rest[: 2 * len(WIDTHS)], rest[2 * len(WIDTHS) :][:2], rest[2 * len(WIDTHS) + 2 :]
    counts = [int(word) for word in words]
    reads, writes = counts[: len(WIDTHS)], counts[len(WIDTHS) :]
    in_bytes = [sum(n * width for n, width in zip(part, WIDTHS, strict=True)) for part in (reads, writes)]
    name = known[int(number)].name if what == "s" else LUMPS.get(what, "")
    kind = "lump" if name == REST else KINDS.get(what, "lump")
    touched = (sum(reads), sum(writes), *in_bytes, *map(int, lines))
    return Truth(kind, name, int(size), int(blocks), frames(stack), *touched)


def counted(program: Program, folder: Path, options: Sequence[str] = ()) -> list[Truth]:
    """Runs a program under the tool, with these options of it; how it ends is its own affair."""
    known = statics(program.executable)
    lines = [f"{one.module} {one.offset:x} {one.bytes:x}\n" for one in known]
    (program.folder / "statics.txt").write_text("".join(lines))
    where = built(folder)
    report = program.folder / "objects.out"
    shim = os.pathsep.join(filter(None, [str(where / SHIM), program.environment.get("LD_PRELOAD")]))
    ours = {
        "VALGRIND_LIB": str(where),
        "LD_PRELOAD": shim,
        "OBJECT_COUNTS_STATICS": str(program.folder / "statics.txt"),
    }
    report.unlink(missing_ok=True)
    command = ["valgrind", "-q", "--tool=objects", f"--objects-out={report}", *options, *program.command]
    with program.input() as words:
        environment = {**program.surroundings, **ours}
        subprocess.run(
            command, cwd=program.folder, env=environment, stdin=words, check=False, capture_output=True, timeout=1500
        )
    return [parsed(line, known) for line in report.read_text().splitlines()]


def truth(program: Program, tool: Path, name: str = "truth", options: Sequence[str] = ()) -> list[Truth]:
    """The truth of a program, counted with these options of the tool if it is not there by this name."""
    path = program.folder / f"{name}.json"
    if not path.exists():
        path.write_text(json.dumps([asdict(one) for one in counted(program, tool, options)], indent=1) + "\n")
    return Truth.read(path)
