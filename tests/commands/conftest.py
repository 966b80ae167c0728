"""Verbs that start programs are called as processes of their own."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from support import Run


@pytest.fixture
def run(executable: Path, folder: Path) -> Run:
    """Runs `tierloom WORDS…` as a process, in an empty folder."""

    def call(*words: object, stdin: str = "") -> subprocess.CompletedProcess[str]:
        command = [str(executable), *map(str, words)]
        return subprocess.run(command, input=stdin, cwd=folder, capture_output=True, text=True, check=False)

    return call
