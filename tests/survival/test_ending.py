"""How a program ended is told by name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support import REHEARSE, Run

SEGFAULT = "the program was killed by SIGSEGV (segmentation fault)"


@pytest.mark.parametrize(
    ("script", "code", "signal", "told"),
    [
        ("kill -SEGV $$", 139, "SIGSEGV", SEGFAULT),
        ("kill -KILL $$", 137, "SIGKILL", "the program was killed by SIGKILL (killed)"),
        ("exit 139", 139, None, "the program ended with exit code 139"),
        ("true", 0, None, "the program ended with exit code 0"),
    ],
)
def test_profile_says_how_the_program_ended(
    run: Run, folder: Path, script: str, code: int, signal: str | None, told: str
) -> None:
    ran = run("profile", "-o", "p.profile", "--json", "--", "sh", "-c", script)
    assert ran.returncode == code
    assert told in ran.stderr
    program = json.loads(ran.stdout)["program"]
    assert (program["exit_code"], program.get("signal")) == (code, signal)
    assert json.loads((folder / "p.profile" / "profile.json").read_text())["program"] == program


def test_run_says_how_the_program_ended(run: Run, folder: Path) -> None:
    assert run("plan", "mg-e", "--machine", "liu-a", "-o", "x.plan.toml").returncode == 0
    ran = run("run", "--plan", "x.plan.toml", *REHEARSE, "--json", "--", "sh", "-c", "kill -SEGV $$")
    assert ran.returncode == 139
    assert SEGFAULT in ran.stderr
    assert json.loads(ran.stdout)["signal"] == "SIGSEGV"
    assert not list(folder.glob("*.profile"))
