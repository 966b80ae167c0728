"""What memories are made of, through the import: it tells the core's rule of a tree what measurement tells it.

`crates/probe/tests/recorded.rs` holds the rule itself to the same table.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tierloom.machine_formats import import_machine

TABLE = (Path(__file__).parent / "memory_kinds.txt").read_text()
COMMON, *MACHINES = TABLE.split("\n== ")


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.partition("\n")[0])
def test_memories_are_what_the_table_says_they_are(tmp_path: Path, machine: str) -> None:
    lines = [*COMMON.splitlines(), *machine.splitlines()]
    for line in lines:
        write(tmp_path, line)
    found = import_machine([tmp_path])
    kinds = {memory["name"].removeprefix("node"): memory["kind"] for memory in found.machine.data["memories"]}
    guesses = [told[1] for warning in found.warnings if (told := re.match(r"node (\d+) is taken for", warning["what"]))]
    answers = [line.split() for line in lines if line.startswith(("is ", "guess "))]
    assert answers
    for word, number, kind in answers:
        assert (kinds[number], number in guesses) == (kind, word == "guess")


def write(folder: Path, line: str) -> None:
    """A file of a line `PATH = CONTENT`, or a link of `PATH -> PLACE`; what begins otherwise is none."""
    if not line.startswith("/"):
        return
    path, link, content = line.partition(" -> ")
    if not link:
        path, _, content = line.partition("=")
    file = folder / path.strip().lstrip("/")
    file.parent.mkdir(parents=True, exist_ok=True)
    if link:
        file.symlink_to(content)
    else:
        file.write_text(content.strip().replace("\\n", "\n").replace("\\0", "\0") + "\n")
