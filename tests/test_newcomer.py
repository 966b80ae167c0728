"""Who reads only what is printed gets all that they wished for, by the commands of docs/newcomer.md."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from newcomer import LINES, Newcomer, visit
from support import ROOT
from terminal import Typed, hints, shortened

PAGE = ROOT / "docs" / "newcomer.md"
BLOCK = re.compile(r"^```text\n\$ (.*)\n((?s:.*?))^```", re.MULTILINE)
"""A command, and what is shown of its output."""

MEASURED = re.compile(r"tierloom ((demo|profile|run)\b|\w+ (own\.(profile|plan)|demo/))")
"""What a run of a program decides, or reads what one left; the commit alone decides what others print."""


def kept() -> list[tuple[str, str]]:
    """Commands of the page, and what it shows of each."""
    return BLOCK.findall(PAGE.read_text(encoding="utf-8"))


@dataclass
class Replayed(Newcomer):
    """The newcomer of the page: what a program's run decided is as it was, everything else is typed again."""

    shown: Iterator[tuple[str, str]] = field(default_factory=lambda: iter(kept()))

    def type(self, command: str, why: str = "") -> Typed:
        expected, text = next(self.shown)
        assert command == expected, "python tools/newcomer.py docs/newcomer.md"
        if MEASURED.match(command):
            self.typed.append(Typed(command, why, 0, text, hints(text)))
            return self.typed[-1]
        typed = super().type(command, why)
        assert typed.code == 0, typed.text
        assert words(shortened(typed.text, LINES)) == words(text), "python tools/newcomer.py docs/newcomer.md"
        return typed

    def run(self, command: str) -> subprocess.CompletedProcess[str]:
        """Worker processes are for the tests of sweeps: here it computes by itself."""
        return super().run(f"{command} --workers 0" if command.startswith("tierloom sweep ") else command)


def words(text: str) -> list[list[str]]:
    """By line that has any, without how long it took, on which the widths of its table hang."""
    masked = re.sub(r"\S+ m?s +[\d,]+$", "", re.sub("─+", "", text), flags=re.MULTILINE)
    return [line.split() for line in masked.splitlines() if line.strip()]


def test_what_the_newcomer_reads_leads_to_what_it_types(tmp_path: Path) -> None:
    newcomer = Replayed(tmp_path)
    visit(newcomer)
    assert next(newcomer.shown, None) is None, "the page has more"
    assert sum(MEASURED.match(each.command) is None for each in newcomer.typed) > 10
    assert [what for what, is_met in newcomer.wishes[3:] if not is_met] == []


def test_the_first_command_is_what_make_demo_ends_with() -> None:
    done = subprocess.run(
        ["make", "--no-print-directory", "--dry-run", "demo"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    first = next(command for command, _ in kept() if not command.endswith("--help"))
    assert done.stdout.splitlines()[-1].removeprefix(".venv/bin/") == first


@pytest.mark.live
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.needs("xz")
def test_a_newcomer_gets_there(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "newcomer.py", page], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    typed = [command for command, _ in BLOCK.findall(page.read_text(encoding="utf-8"))]
    assert len(typed) > 15
    # Nodes of memories are this machine's own.
    known = [re.sub(r" --node \S+", "", command) for command, _ in kept()]
    assert [re.sub(r" --node \S+", "", command) for command in typed] == known, (
        "python tools/newcomer.py docs/newcomer.md"
    )
