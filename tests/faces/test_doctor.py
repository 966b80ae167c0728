"""`tierloom doctor`: what is missing is named with what to do, on this machine and on machines made up here."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from support import Tierloom

from tierloom import doctor, extras, plan_runner
from tierloom.doctor import CHECKS, Check, Checkup, Finding
from tierloom.errors import RecordingError

pytestmark = pytest.mark.smoke

BY_NAME = {check.name: check for check in CHECKS}


@pytest.fixture
def two_nodes(tmp_path: Path) -> Path:
    """A machine with a second node that has no CPUs, and a kernel that moves no page by itself."""
    files = {
        "proc/sys/kernel/osrelease": "6.12.1",
        "proc/sys/kernel/perf_event_paranoid": "4",
        "proc/sys/kernel/numa_balancing": "1",
        "proc/cpuinfo": "model name\t: A CPU",
        "sys/devices/system/cpu/online": "0-1",
        "sys/devices/system/node/online": "0-1",
        "sys/devices/system/node/node0/cpulist": "0-1",
        "sys/devices/system/node/node1/cpulist": "",
        "sys/kernel/mm/mempolicy/weighted_interleave/node0": "3",
        "sys/kernel/mm/mempolicy/weighted_interleave/node1": "1",
    }
    for node in (0, 1):
        files[f"sys/devices/system/node/node{node}/meminfo"] = (
            f"Node {node} MemTotal:        4194304 kB\nNode {node} MemFree:        2097152 kB"
        )
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text + "\n")
    return tmp_path


def test_everything_is_tried_and_what_is_missing_says_what_to_do(tierloom: Tierloom) -> None:
    told = tierloom("doctor", "--json")
    document = json.loads(told.stdout)
    assert told.exit_code == (0 if document["ready"] else 1)
    assert [each["check"] for each in document["checks"]] == list(BY_NAME)
    for each in document["checks"]:
        assert each["verdict"] in {"works", "limited", "missing"}
        assert each["found"], each
        assert "hint:" not in each["found"] + each["remedy"]
        assert bool(each["remedy"]) == (each["verdict"] != "works"), each


def test_the_table_has_a_line_a_check_with_its_remedy(tierloom: Tierloom, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_root: Path) -> str:
        message = "there is none\n  hint: get one"
        raise RecordingError(message)

    monkeypatch.setattr(doctor, "CHECKS", (Check("a thing", "all", broken, needed=True),))
    told = tierloom("doctor")
    assert told.exit_code == 1
    assert all(words in told.stdout for words in ("a thing", "missing", "all", "there is none", "→ get one"))


def test_only_what_profiling_and_planning_need_decides() -> None:
    def finding(verdict: doctor.Verdict, *, needed: bool) -> Finding:
        return Finding("x", "y", verdict, "found", "remedy", needed)

    assert Checkup((finding("missing", needed=False), finding("limited", needed=True))).ready
    assert not Checkup((finding("works", needed=True), finding("missing", needed=True))).ready


def test_a_machine_with_far_memory_is_told_apart_from_one_without(two_nodes: Path) -> None:
    found = BY_NAME["memory nodes"](two_nodes)
    assert found.verdict == "works"
    assert found.found.startswith("node 0 dram 4GiB, node 1 ")
    (two_nodes / "sys/devices/system/node/online").write_text("0\n")
    found = BY_NAME["memory nodes"](two_nodes)
    assert found.verdict == "limited"
    assert "lab run" in found.remedy


def test_a_kernel_that_will_not_move_pages_is_told_with_the_setting(two_nodes: Path) -> None:
    found = BY_NAME["page migration"](two_nodes)
    assert found.verdict == "limited"
    assert "numa_balancing" in found.found + found.remedy


def test_weights_are_read_where_the_kernel_has_them(two_nodes: Path) -> None:
    assert BY_NAME["host weights"](two_nodes).found == "node0 3, node1 1"
    shutil.rmtree(two_nodes / "sys/kernel/mm/mempolicy")
    assert "6.9" in BY_NAME["host weights"](two_nodes).remedy


def test_refused_perf_events_are_a_limit_that_names_the_setting(
    two_nodes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sampled(backend: str) -> str:
        if backend == "auto":
            return "ptrace, 100 samples of a short program"
        message = "samples by perf_event_open are refused: EACCES\n  hint: set it to 2 or less"
        raise RecordingError(message)

    monkeypatch.setattr(doctor, "_sampled", sampled)
    found = BY_NAME["perf events"](two_nodes)
    assert (found.verdict, found.remedy) == ("limited", "set it to 2 or less")
    assert found.found.endswith("EACCES; kernel.perf_event_paranoid is 4")


def test_pages_that_are_not_where_they_were_asked_for_are_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = {"problems": [], "residency": {"by_node": {"0": 4096}}}
    monkeypatch.setattr(doctor, "run", lambda *_, **__: {"rules": [rule], "warnings": []})
    found = BY_NAME["placing pages"](Path("/"))
    assert found.verdict == "limited"
    assert found.found == "of 16 MiB, 4KiB are where they should be"
    assert "CAP_SYS_NICE" in found.remedy


def test_every_extra_is_named_with_what_it_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "_installed", lambda name: name != "optuna")
    found = BY_NAME["tierloom[sweep]"](Path("/"))
    assert (found.verdict, found.found, found.remedy) == (
        "limited",
        "no optuna",
        "pip install '.[sweep]'",
    )
    assert found.serves == extras.EXTRAS["sweep"]
    assert BY_NAME["tierloom[report]"](Path("/")).verdict == "works"


def test_weights_that_a_killed_run_left_are_found_with_the_command_that_restores_them(two_nodes: Path) -> None:
    saved = {"pid": 7, "started": 5, "weights": {"0": 5, "1": 2}, "automatic": False}
    (two_nodes / "run" / "tierloom").mkdir(parents=True)
    (two_nodes / "run" / "tierloom" / "host-weights.json").write_text(json.dumps(saved))
    found = BY_NAME["host weights"](two_nodes)
    assert found.verdict == "limited"
    assert "node0 5, node1 2" in found.found
    assert "doctor --restore-weights" in found.remedy
    assert plan_runner.restore_host_weights(two_nodes)
    weights = two_nodes / "sys" / "kernel" / "mm" / "mempolicy" / "weighted_interleave"
    assert [(weights / node).read_text() for node in ("node0", "node1")] == ["5", "2"]
    assert BY_NAME["host weights"](two_nodes).verdict == "works"
    assert not plan_runner.restore_host_weights(two_nodes)
