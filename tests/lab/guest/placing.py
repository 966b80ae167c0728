"""What the placement checks share: a plan by hand, a program under it, and the law of interleave in Python.

The law is written here a second time on purpose: the checks hold the runtime to the kernel's
definition (`weighted_interleave_nid` of mm/mempolicy.c), not to the runtime's own code.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from dram import bring_code_home

HERE = Path(__file__).parent
PAGE = 4096
MIB = 1 << 20
TIERLOOM = Path(sys.executable).parent / "tierloom"
NODES = ("--node", "n0=0", "--node", "n1=1")
"""Names of `plan` say nothing, so that checks hold on every topology."""


@dataclass(frozen=True)
class Shown:
    """An object as the program saw it: its first whole page, and the node of every page (None: not there)."""

    start: int
    nodes: list[int | None]

    def share(self, node: int) -> float:
        """Of the pages that are there, how many are on this node."""
        there = [at for at in self.nodes if at is not None]
        return there.count(node) / max(len(there), 1)


def skip(reason: str) -> NoReturn:
    """Ends a check that cannot be made here."""
    raise unittest.SkipTest(reason)


def program() -> Path:
    """The program of `objects.c`, compiled once."""
    return compiled("objects.c", "objects", "-ldl", "-pthread")


def compiled(source: str, name: str, *options: str) -> Path:
    """A C file of this folder, compiled into the folder for temporary files."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        skip("there is no C compiler in the guest")
    made = Path(tempfile.gettempdir()) / f"tierloom-lab-{name}"
    if not made.exists():
        fresh = made.with_suffix(f".{os.getpid()}")
        subprocess.run([compiler, "-O1", "-g", "-o", fresh, HERE / source, *options], check=True)
        fresh.rename(made)
    return made


def rule(name: str, select: str, place: str, options: str = "") -> str:
    """One rule of a plan, in TOML."""
    more = f"options = {{ {options} }}\n" if options else ""
    return f'[[rules]]\nobject = "{name}"\nsize_bytes = 1\nselect = {{ {select} }}\nplace = {{ {place} }}\n{more}'


def plan(*rules: str, default: str = '"first_touch"') -> Path:
    """A plan for two nodes, `n0` and `n1`, in the current folder."""
    head = (
        'version = 1\nmachine = "guest"\nprofile = "checks"\npolicy = "by hand"\nnodes = ["n0", "n1"]\n'
        f"default = {default}\n"
        "[predicted]\ntime_s = 1.0\nlow_s = 1.0\nhigh_s = 1.0\nthreads = 1\nbytes = [0, 0]\n"
    )
    number = sum(1 for _ in Path.cwd().glob("checks*.plan.toml"))
    path = Path.cwd() / f"checks{number}.plan.toml"
    path.write_text(head + "\n".join(rules))
    return path


def run(plan_file: Path, *actions: str, words: tuple[str, ...] = ()) -> tuple[dict[str, Shown], dict[str, Any]]:
    """Runs `objects ACTIONS…` under a plan: what it saw of its own pages, and the report."""
    shown, report = raw_run(plan_file, [str(program()), *actions], words)
    return parse(shown), report


def raw_run(plan_file: Path, command: list[str], words: tuple[str, ...] = ()) -> tuple[str, dict[str, Any]]:
    """Runs a command under a plan: its output, and the report."""
    whole = [str(TIERLOOM), "run", "--plan", str(plan_file), "--json", *NODES, *words, "--", *command]
    done = subprocess.run(whole, capture_output=True, text=True, check=False)
    # A program that filled DRAM leaves Python's code in CXL memory, where the work that follows takes minutes.
    bring_code_home()
    print(done.stderr[-1500:])
    assert done.returncode == 0, done.returncode
    return done.stderr, json.loads(done.stdout)


def parse(text: str) -> dict[str, Shown]:
    """Lines of the verb `show`; the last line of each object counts."""
    shown = {}
    for line in text.splitlines():
        words = line.split(" ")
        if len(words) == 3 and "x" in words[2] and words[2][0].isdigit():
            shown[words[0]] = Shown(int(words[1], 16), [node for part in words[2].split(",") for node in run_of(part)])
    return shown


def run_of(part: str) -> list[int | None]:
    """`3x0`: three pages on node 0."""
    length, node = part.split("x")
    return [None if node == "-" else int(node)] * int(length)


def law(address: int, weights: list[tuple[int, int]], unit: int = PAGE) -> int:
    """Node of the page at an address: its unit's number modulo the sum of the weights, nodes in ascending order."""
    at = address // unit % sum(weight for _, weight in weights)
    for node, weight in sorted(weights):
        if at < weight:
            return node
        at -= weight
    raise AssertionError


def obeys(shown: Shown, weights: list[tuple[int, int]], unit: int = PAGE) -> None:
    """Every page of an object is where the law says."""
    wrong = [
        (page, node, law(shown.start + page * PAGE, weights, unit))
        for page, node in enumerate(shown.nodes)
        if node != law(shown.start + page * PAGE, weights, unit)
    ]
    assert not wrong, f"{len(wrong)} of {len(shown.nodes)} pages are elsewhere, first (page, node, law): {wrong[:5]}"


def huge_unit(shown: Shown) -> int:
    """Unit of an object's law: huge pages where the kernel gives them to any range that holds one."""
    enabled = Path("/sys/kernel/mm/transparent_hugepage/enabled").read_text()
    if "[always]" not in enabled:
        return PAGE
    huge = 2 * MIB
    first = -(-shown.start // huge) * huge
    return huge if first + huge <= shown.start + len(shown.nodes) * PAGE else PAGE


def counters() -> dict[str, int]:
    """/proc/vmstat."""
    return {
        name: int(value) for name, value in (line.split() for line in Path("/proc/vmstat").read_text().splitlines())
    }


def drop_caches() -> None:
    """Files' pages that nobody uses give way, so that what is free is free."""
    Path("/proc/sys/vm/drop_caches").write_text("1")


def node_one() -> None:
    """Skips a check where there is no second node."""
    if not Path("/sys/devices/system/node/node1").exists():
        skip("this guest has one memory node")
