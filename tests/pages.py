"""The pages of the documents: their blocks, and their commands typed as a reader would."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import click.testing
from support import ROOT, lacking

from tierloom.commands import main

DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])

NUMBERS = "".join(f"{(line * 7919) % 100_003}\n" for line in range(200_000))
"""What is in the file that examples sort."""

NEEDED = {"tierloom capacity measure redis": "redis-server", "gcc": "gcc"}
"""Programs that commands start with or need, by how these begin; the rest need what is always here."""

STARTING = {"profile", "run", "validate", "recording", "measure"}
"""Words of verbs that start or read programs, which are processes of their own; the others are called in this one."""


def blocks(kind: str) -> list[tuple[str, str]]:
    """Fenced blocks of one kind, with the document that holds each."""
    return [(path.name, text) for path in DOCUMENTS for text in blocks_of(path, kind)]


def blocks_of(page: Path, kind: str) -> list[str]:
    """Fenced blocks of one kind of a page."""
    return re.findall(rf"^```{kind}\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def is_file(block: str) -> bool:
    """Whether a block of Python is a file for a command to read, not to run as it stands: its first line names it."""
    return re.match(r"# \w+\.py: ", block) is not None


def write_files(page: Path, folder: Path) -> None:
    """Writes the files that a page gives its readers, by the name in the first line of each, and the one to sort."""
    for text in [*blocks_of(page, "c"), *filter(is_file, blocks_of(page, "python"))]:
        (folder / text.split()[1].strip(":")).write_text(text)
    (folder / "numbers.txt").write_text(NUMBERS)


def reason_to_leave_out(command: str) -> str | None:
    """Why a command cannot run on this machine."""
    return next((lacking(program) for start, program in NEEDED.items() if command.startswith(start)), None)


def typed(command: str, executable: Path) -> str:
    """Types a command in the current folder; what it prints on stdout."""
    told = re.fullmatch(r"tierloom (.*?)(?: > (\S+))?", command)
    if told is None or not STARTING.isdisjoint(shlex.split(told[1])):
        return started(command, executable)
    printed = called(told[1])
    if told[2]:
        Path(told[2]).write_text(printed)
    return printed


def started(command: str, executable: Path) -> str:
    """Types a command at a shell."""
    words = re.sub(r"^tierloom\b", str(executable), command)
    done = subprocess.run(["bash", "-c", words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"$ {command}\n{done.stderr}"
    assert "Traceback" not in done.stderr
    return done.stdout


def called(words: str) -> str:
    """Calls a verb in this process. Worker processes are for the tests of sweeps: here it computes by itself."""
    asked = [*shlex.split(words), *(["--workers", "0"] if words.startswith("sweep ") else [])]
    done = click.testing.CliRunner().invoke(main, asked, catch_exceptions=False)
    assert done.exit_code == 0, f"$ tierloom {words}\n{done.stderr}"
    return done.stdout
