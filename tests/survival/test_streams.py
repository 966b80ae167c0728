"""What is printed arrives, or its absence is one error: streams that are full, closed, or in another encoding."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Shell = Callable[..., "subprocess.CompletedProcess[bytes]"]


@pytest.fixture
def shell(executable: Path, folder: Path) -> Shell:
    """Runs a line of the shell, in which `tierloom` is this one."""

    def call(line: str, **variables: str) -> subprocess.CompletedProcess[bytes]:
        environment = {**os.environ, "PATH": f"{executable.parent}:{os.environ['PATH']}", **variables}
        return subprocess.run(["sh", "-c", line], cwd=folder, env=environment, capture_output=True, check=False)

    return call


@pytest.mark.parametrize("words", ["--version", "plan --help", "machine list", "machine show liu-a --json"])
def test_an_output_without_room_is_one_error(shell: Shell, words: str) -> None:
    ran = shell(f"tierloom {words} > /dev/full")
    assert ran.returncode == 1
    told = ran.stderr.decode().splitlines()
    assert told[:2] == [
        "error: standard output: No space left on device; not all of it was written",
        "hint: make room there, or send it elsewhere",
    ]
    assert not [line for line in told[2:] if not line.startswith("next: ")]


def test_words_without_room_end_with_the_code_of_an_error(shell: Shell) -> None:
    assert shell("tierloom machine show nope 2> /dev/full").returncode != 0


@pytest.mark.parametrize("words", ["machine list", "machine show liu-a --json", "machine show liu-a --toml"])
def test_a_closed_output_is_as_one_that_goes_nowhere(shell: Shell, words: str) -> None:
    ran = shell(f"tierloom {words} >&-")
    assert ran.returncode == 0
    assert b"Traceback" not in ran.stderr
    assert shell(f"tierloom {words} >&- 2>&- <&-").returncode == 0


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_what_another_program_reads_is_utf_8_in_any_locale(shell: Shell, encoding: str) -> None:
    shown = shell("tierloom machine show liu-a", PYTHONIOENCODING=encoding)
    assert shown.returncode == 0, shown.stderr
    assert "▁" in shown.stdout.decode()
    document = shell("tierloom machine show liu-a --json", PYTHONIOENCODING=encoding)
    assert json.loads(document.stdout)["name"] == "liu-a"


def test_a_terminal_without_a_letter_shows_a_mark_in_its_place(shell: Shell) -> None:
    line = "script -qec 'tierloom machine show liu-a' /dev/null"
    if shell("command -v script").returncode:
        pytest.skip("there is no `script` here, which makes a terminal: install util-linux")
    ran = shell(line, PYTHONIOENCODING="latin-1")
    assert ran.returncode == 0, ran.stdout
    assert b"Traceback" not in ran.stdout
    assert b"?" in ran.stdout


def test_a_reader_that_stops_ends_it_quietly(shell: Shell) -> None:
    ran = shell("{ tierloom machine show liu-a --json; echo $? >&2; } | true")
    assert ran.stderr.split()[-1:] in ([b"0"], [b"1"])
    assert b"Error" not in ran.stderr
    assert b"rror:" not in ran.stderr
