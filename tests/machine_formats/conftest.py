"""What the tests of foreign formats share: recorded machines, and the error that every reader raises."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support import ROOT

Tree = Callable[..., Path]
RECORDED = ROOT / "crates/probe/tests/recorded"


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """Unpacks a recorded machine's `/proc` and `/sys`, with changed files on top; returns the folder."""

    def unpack(name: str, changes: str = "") -> Path:
        lines = (RECORDED / f"{name}.txt").read_text().splitlines() + changes.splitlines()
        for path, value in (line.split("=", 1) for line in lines if line.startswith("/")):
            file = tmp_path / "tree" / path.strip().lstrip("/")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(value.strip().replace("\\n", "\n") + "\n")
        return tmp_path / "tree"

    return unpack
