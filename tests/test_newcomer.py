"""Who reads only what is printed gets all that they wished for, by the commands of docs/newcomer.md."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from support import ROOT

pytestmark = [pytest.mark.live, pytest.mark.slow, pytest.mark.timeout(900), pytest.mark.needs("xz")]

TYPED = re.compile(r"^```text\n\$ (.*)$", re.MULTILINE)


def test_a_newcomer_gets_there(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "newcomer.py", page], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    kept = (ROOT / "docs" / "newcomer.md").read_text(encoding="utf-8")
    typed = TYPED.findall(page.read_text(encoding="utf-8"))
    assert len(typed) > 15
    # Nodes of memories are this machine's own.
    known = [re.sub(r" --node \S+", "", command) for command in TYPED.findall(kept)]
    assert [re.sub(r" --node \S+", "", command) for command in typed] == known, (
        "python tools/newcomer.py docs/newcomer.md"
    )
