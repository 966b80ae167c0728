"""The story of docs/story.md comes out the same: its commands work, and what its text says holds."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from support import ROOT

pytestmark = [
    pytest.mark.live,
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.needs("/usr/bin/python3", "/usr/lib/python3/dist-packages/scipy", "qemu-system-x86_64"),
]

TYPED = re.compile(r"^```text\n\$ (.*)$", re.MULTILINE)


def test_the_story_comes_out_the_same(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "story.py", page], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    kept = (ROOT / "docs" / "story.md").read_text(encoding="utf-8")
    typed = TYPED.findall(page.read_text(encoding="utf-8"))
    assert len(typed) >= 7
    assert typed == TYPED.findall(kept), "python tools/story.py docs/story.md"
    assert page.with_suffix(".png").stat().st_size > 10_000
