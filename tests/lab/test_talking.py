"""How host and guest talk, without a guest: jobs, scripts, shared folders, and the verbs' words."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import Tierloom

from tierloom.errors import LabError, RequestError
from tierloom.lab import exchange
from tierloom.lab.guest import outermost

WORDS = st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])), max_size=4)


@given(WORDS, WORDS)
def test_a_script_hands_over_every_word_and_variable(words: list[str], values: list[str]) -> None:
    program = (
        "import json, os, sys; values = [os.environ[f'V{i}'] for i in range(int(os.environ['N']))];"
        "print(json.dumps([sys.argv[1:], values]))"
    )
    variables = {f"V{index}": value for index, value in enumerate(values)} | {"N": str(len(values))}
    text = exchange.script([sys.executable, "-c", program, *words], Path("/"), variables)
    told = subprocess.run(["sh"], input=text, capture_output=True, text=True, check=True, encoding="utf-8").stdout
    assert json.loads(told) == [words, values]


def test_the_guests_tools_come_behind_the_hosts_own() -> None:
    host = {"PATH": "/opt/bin:/bin", "HOME": "/home/me", "LD_PRELOAD": "x.so", "SSH_AUTH_SOCK": "/s", "A-B": "1"}
    found = exchange.environment(host)
    assert found["PATH"].startswith("/opt/bin:/bin:")
    assert found["PATH"].endswith(":/run/tierloom-lab/bin")
    assert set(found) == {"PATH", "HOME"}


class FakeGuest:
    """Answers jobs as the guest's init does."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        exchange.prepare(folder)

    def answer(self, name: str, parts: list[tuple[str, str]], code: int) -> None:
        job = self.folder / "jobs" / name
        for stream, text in parts:
            with (job / stream).open("a") as out:
                out.write(text)
            time.sleep(2 * exchange.POLL_S)
        # It appears as a whole, as the init's does: the host looks at any moment.
        (job / "exit.new").write_text(f"{code}\n")
        (job / "exit.new").rename(job / "exit")


def test_output_arrives_while_it_appears_and_all_of_it_before_the_end(tmp_path: Path) -> None:
    guest = FakeGuest(tmp_path)
    job = exchange.submit(tmp_path, ["program"], Path("/"), stdin=b"in")
    assert (tmp_path / "queue" / job.name).exists()
    assert (job.folder / "stdin").read_bytes() == b"in"
    parts = [("stdout", "one "), ("stderr", "oops"), ("stdout", "two")]
    answering = threading.Thread(target=guest.answer, args=(job.name, parts, 3))
    answering.start()
    seen: list[tuple[str, bytes]] = []
    result = exchange.finish(
        job, "cxl", alive=lambda: True, timeout_s=30, sink=lambda stream, data: seen.append((stream, data))
    )
    answering.join()
    assert (result.stdout, result.stderr, result.exit_code, result.topology) == ("one two", "oops", 3, "cxl")
    assert seen == [("stdout", b"one "), ("stderr", b"oops"), ("stdout", b"two")]
    assert not job.folder.exists()


def test_a_guest_that_dies_and_a_command_that_is_slow_are_told_apart(tmp_path: Path) -> None:
    exchange.prepare(tmp_path)
    job = exchange.submit(tmp_path, ["program"], Path("/"))
    with pytest.raises(LabError, match="the guest ended before the command did\nhint:"):
        exchange.finish(job, "cxl", alive=lambda: False, timeout_s=None, sink=None)
    with pytest.raises(LabError, match=r"the command did not end in 0.01 s\nhint: .*--timeout"):
        exchange.finish(job, "cxl", alive=lambda: True, timeout_s=0.01, sink=None)
    assert (tmp_path / "cancel" / job.name).exists()


def test_jobs_never_share_a_name(tmp_path: Path) -> None:
    exchange.prepare(tmp_path)
    assert len({exchange.submit(tmp_path, ["program"], Path("/")).name for _ in range(5)}) == 5


def test_a_folder_inside_a_shared_one_comes_with_it(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "ab").mkdir()
    found = outermost([tmp_path / "a" / "b", tmp_path / "ab", tmp_path / "a", tmp_path / "a"])
    assert found == (tmp_path / "a", tmp_path / "ab")


def test_what_cannot_be_shared_is_named(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="is no folder, so the guest cannot have it\nhint: --share"):
        outermost([tmp_path / "nowhere"])
    with pytest.raises(RequestError, match="the whole of / cannot be shared"):
        outermost([Path("/")])


@pytest.mark.usefixtures("folder")
def test_verbs_that_need_a_guest_say_how_to_start_one(tierloom: Tierloom, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(Path.cwd()))
    assert tierloom("lab", "status").stdout == "no guest is up\n"
    assert json.loads(tierloom("lab", "status", "--json").stdout) == {"kind": "guest", "version": 2, "up": False}
    for words in (("lab", "down"), ("lab", "ssh", "--", "true"), ("lab", "ssh")):
        done = tierloom(*words)
        assert done.exit_code == 1
        assert done.stderr == "error: no guest is up\nhint: `tierloom lab up` starts one\n"


@pytest.mark.usefixtures("folder")
def test_a_wrong_request_ends_before_anything_starts(tierloom: Tierloom, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(Path.cwd()))
    for words in (("--topology", "ring"), ("--memory", "1TB,x"), ("--memory", "1KiB"), ("--share", "nowhere")):
        assert tierloom("lab", "run", *words, "--", "true").exit_code == 2
    assert not (Path.cwd() / "tierloom" / "lab" / "images").exists()
