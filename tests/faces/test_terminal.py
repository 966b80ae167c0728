"""Names that steer a terminal: whoever made them, a terminal is shown them and never sent them."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import Tierloom

import tierloom as package
from tierloom.commands.terminal import STEERING, visible, visible_json
from tierloom.pmem import Pool

STEERED = {"ESC": "\x1b]0;owned\x07\x1b[2Jb", "CSI": "a\x9b31mb", "DEL": "a\x7fb", "bidi": "a\u202egpj.b\u2066c"}
"""Names that set a terminal's title and clear it, colour what follows, and show another text than they are."""
ALLOWED = "\t\n"


@pytest.fixture(params=STEERED)
def name(request: pytest.FixtureRequest) -> str:
    return STEERED[request.param]


@pytest.fixture
def files(folder: Path, name: str) -> Path:
    """A profile, a machine, a plan and a pool, all with that name wherever a name can be."""
    profile = json.loads(package.Profile.load("mg-e").text)
    profile["name"], profile["program"]["command"] = name, [name]
    first = profile["objects"][0]["name"]
    text = json.dumps(profile).replace(json.dumps(first), json.dumps(name))
    (folder / "n.profile").mkdir()
    (folder / "n.profile" / "profile.json").write_text(text)
    machine = json.dumps({**package.Machine.load("liu-a").data, "name": name, "title": name})
    package.Machine.from_data(json.loads(machine)).save("n.toml")
    package.plan("n.profile", "n.toml").plan().save("n.plan.toml")
    with Pool.create("n.pool", "1MiB") as pool:
        pool.zeros(name, 3)
    return folder


def steering(text: str) -> Iterator[str]:
    return (letter for letter in text if ord(letter) in STEERING)


COMMANDS = [
    "machine show n.toml",
    "plan n.profile --machine n.toml",
    "plan n.profile --machine n.toml --policies NAME",
    "plan n.profile --machine NAME",
    "plan n.profile --machine n.toml --fast-memory NAME",
    "simulate n.profile -m n.toml",
    "diff n.profile mg-e",
    "run --plan n.plan.toml --node rdram=0 --node ldram=0 --node cxl=0 -- NAME",
    "pmem show n.pool",
    "pmem show NAME",
    "report n.profile -o NAME.html",
    "sweep NAME",
    "NAME",
    "plan --NAME",
]


@pytest.mark.parametrize("words", COMMANDS)
@pytest.mark.usefixtures("files")
def test_no_name_reaches_the_terminal_as_it_is(tierloom: Tierloom, words: str, name: str) -> None:
    result = tierloom(*(word.replace("NAME", name) for word in words.split(" ")))
    assert not {*steering(result.stdout + result.stderr)}
    assert "Traceback" not in result.stderr
    assert "\\x" in result.stdout + result.stderr or "\\u" in result.stdout + result.stderr


@pytest.mark.parametrize("words", ["plan n.profile --machine n.toml --json", "pmem show n.pool --json"])
@pytest.mark.usefixtures("files")
def test_json_means_what_it_meant(tierloom: Tierloom, words: str, name: str) -> None:
    result = tierloom(*words.split(" "))
    assert not {*steering(result.stdout)}
    assert json.dumps(name)[1:-1] in json.dumps(json.loads(result.stdout))


@pytest.mark.usefixtures("files")
def test_a_program_for_another_tool_is_exact_in_a_pipe_and_harmless_on_a_terminal(executable: Path) -> None:
    words = [str(executable), "plan", "n.plan.toml", "--emit", "libnuma"]
    piped = subprocess.run(words, capture_output=True, check=True).stdout.decode()
    ours, theirs = pty.openpty()
    with subprocess.Popen(words, stdout=theirs, stderr=theirs) as program:
        os.close(theirs)
        shown = b""
        while chunk := _read(ours):
            shown += chunk
    assert program.returncode == 0
    assert not {*steering(shown.decode().replace("\r\n", "\n"))}
    assert visible(piped) == shown.decode().replace("\r\n", "\n")


def _read(terminal: int) -> bytes:
    """Bytes that the other side wrote; none when it was closed, which Linux tells as an error."""
    try:
        return os.read(terminal, 1 << 16)
    except OSError:
        return b""


def test_a_file_whose_name_is_no_text_is_named(tierloom: Tierloom, folder: Path) -> None:
    (folder / os.fsdecode(b"\xff.profile")).mkdir()
    result = tierloom("plan", os.fsdecode(b"\xff.profile"), "--machine", "liu-a")
    assert result.exit_code == 2
    assert "\\xff.profile" in result.stderr


def test_only_what_steers_is_escaped() -> None:
    whole = "".join(map(chr, range(0x3000)))
    kept = [letter for letter in whole if visible(letter) == letter]
    assert len(kept) == len(whole) - len(STEERING)
    assert {*ALLOWED, "é", "µ", "→", "א"} <= {*kept}
    assert json.loads(visible_json(json.dumps(whole, ensure_ascii=False))) == whole
