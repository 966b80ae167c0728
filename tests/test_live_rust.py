"""Rust tests that judge the machine, each by itself, so that they are judged by repetition as others are."""

from __future__ import annotations

import re
import subprocess

import pytest
from support import ROOT

LIVE = re.compile(r'#\[ignore = "live"\]\n\s*fn (\w+)\(')


def live_tests() -> list[tuple[str, str]]:
    """Each with its crate: functions of modules called `live`."""
    files = sorted((ROOT / "crates").glob("*/**/*.rs"))
    found = [
        (path.relative_to(ROOT / "crates").parts[0], name) for path in files for name in LIVE.findall(path.read_text())
    ]
    return [(f"tierloom-{crate}", name) for crate, name in found]


@pytest.mark.live
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("crate", "name"), live_tests())
def test_a_rust_test_passes(crate: str, name: str) -> None:
    words = ["cargo", "test", "--locked", "--quiet", "--package", crate, "--", "--ignored", f"live::{name}"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "test result: ok. 1 passed" in done.stdout, "it stands in no module called live"


def test_there_are_some() -> None:
    assert ("tierloom-record", "samples_fall_on_code_and_follow_children") in live_tests()
