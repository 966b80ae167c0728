"""A program three times: on its own, under `tierloom profile`, and under `tierloom run`.

The law of all programs is here: the same output and the same exit code in all three. `torture` holds small
programs to it that are hard, `programs` and `benches/real_programs.py` programs that nobody here wrote.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Finished = subprocess.CompletedProcess[bytes]
Start = Callable[..., Finished]
"""Starts the program, told the name of the turn and the words to put before the program's own."""

PLAN = """
version = 1
machine = "this one"
profile = "three ways"
policy = "by hand"
nodes = ["dram"]
default = { prefer = "dram" }

[predicted]
time_s = 1.0
low_s = 1.0
high_s = 1.0
threads = 1
bytes = [0]

[[rules]]
object = "large"
size_bytes = 0
select = { size_at_least = 32768 }
place = { bind = ["dram"] }
"""
"""Every recorded block and everything else is placed, on the node that every machine has."""


@dataclass(frozen=True)
class ThreeWays:
    """What a program did on its own and under us, and what we found out."""

    alone: Finished
    profiled: Finished
    placed: Finished
    profile: dict

    @property
    def code(self) -> int:
        """How it ended alone, as a shell tells it: the exit code, or 128 + the signal."""
        code = self.alone.returncode
        return code if code >= 0 else 128 - code

    def harm(self, visible: Callable[[bytes], bytes] = bytes) -> list[str]:
        """All that was not as ever, after `visible` took away what differs by its nature; stderr is not held to it."""
        found = []
        for way, result in (("profile", self.profiled), ("run", self.placed)):
            if visible(result.stdout) != visible(self.alone.stdout):
                found.append(f"other output under {way}: {result.stdout[-2000:]!r}, not {self.alone.stdout[-2000:]!r}")
            if result.returncode != self.code:
                found.append(f"exit code {result.returncode} under {way}, not {self.code}: {result.stderr.decode()}")
        if (told := self.profile["program"]["exit_code"]) != self.code:
            found.append(f"the profile says exit code {told}, not {self.code}")
        return found

    def unharmed(self, visible: Callable[[bytes], bytes] = bytes, *, words_too: bool = True) -> None:
        """Same output, same exit code; on stderr the program's own words come first, then ours."""
        found = self.harm(visible)
        assert not found, "\n".join(found)
        for result in (self.profiled, self.placed) if words_too else ():
            first = visible(self.alone.stderr)
            assert visible(result.stderr).startswith(first), f"{result.stderr!r} does not begin with {first!r}"

    def complete(self) -> None:
        """No event was lost, so every object is there."""
        lost = [warning for warning in self.warnings() if "allocation events were lost" in warning]
        assert not lost, lost

    def warnings(self) -> list[str]:
        """What the profile warns of; one without warnings does not have the list."""
        return [warning["text"] for warning in self.profile["sampling"].get("warnings", [])]

    def objects(self, name: str) -> list[dict]:
        """Objects by the function that allocated them, or by their symbol."""
        return [item for item in self.profile["objects"] if allocated_by(item) == name]

    def allocations(self, function: str | None = None) -> int:
        """Recorded allocations on the heap, all or by one function."""
        items = self.profile["objects"] if function is None else self.objects(function)
        return sum(item["allocations"] for item in items if item["kind"] == "heap")


def allocated_by(item: dict[str, Any]) -> str:
    """The function that allocated an object, without its parameters, or its symbol: its name is that of a variable."""
    site = item["site"]
    if "symbol" in site:
        return site["symbol"]["symbol"]
    frames = site.get("stack", [])
    return re.split("[(<]", frames[0].get("function", ""))[0] if frames else ""


def run_three_ways(executable: Path, folder: Path, start: Start) -> ThreeWays:
    """Starts a program three times; plan and profile are written into the folder."""
    plan, profile = written_plan(folder), folder / "it.profile"
    alone = start("alone")
    profiled = start("profiled", str(executable), "profile", "-o", str(profile), "--")
    document = profile / "profile.json"
    assert document.exists(), profiled.stderr.decode()
    placed = start("placed", str(executable), "run", "--plan", str(plan), "--")
    return ThreeWays(alone, profiled, placed, json.loads(document.read_text(encoding="utf-8")))


def written_plan(folder: Path) -> Path:
    """The plan as a file."""
    path = folder / "three_ways.plan.toml"
    path.write_text(PLAN)
    return path
