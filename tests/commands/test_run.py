"""`tierloom run`: the program is left alone, and what became of every rule is told."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest
from support import Run

from tierloom.report.tables.runs import node_names
from tierloom.schema import NodeMatchDoc

pytestmark = pytest.mark.smoke

ONLY = "ldram"
"""The memory of the plan that every machine with one socket has."""


@pytest.fixture
def plan(run: Run, folder: Path, workloads: Path) -> Path:
    """A plan for the sparse solver that asks for a node that this machine has."""
    profiled = run("profile", "-o", "cg.profile", "--", workloads / "cg", "--size", "17", "--iterations", "20")
    assert profiled.returncode == 0, profiled.stderr
    words = ("--machine", "liu-a", "--policies", "object-interleave:ldram+cxl", "-o", "cg.plan.toml")
    assert run("plan", "cg.profile", *words).returncode == 0
    path = folder / "cg.plan.toml"
    text = re.sub(r"\[rules\.place[^\[]*", f'[rules.place]\nprefer = "{ONLY}"\n\n', path.read_text())
    text = re.sub(r"\[rules\.place\]\n[^\[]*\[\"[^\n]*\n", f'[rules.place]\nprefer = "{ONLY}"\n', text)
    path.write_text(text)
    return path


def test_every_object_gets_its_place_and_the_program_its_answer(run: Run, plan: Path, workloads: Path) -> None:
    command = (workloads / "cg", "--size", "17", "--iterations", "20")
    alone = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=True)
    result = run("run", "--plan", plan, "--", *command)
    assert result.returncode == 0
    assert result.stdout == alone.stdout
    assert "held" in result.stderr
    report = json.loads(run("run", "--plan", plan, "--json", "--", *command).stdout)
    # By the variable that has it, or where the compiler does not tell by the function that allocates it.
    heap = {re.sub("^alloc_|@.*", "", rule["object"]): rule for rule in report["rules"]}
    for name in ("rowptr", "col", "a", "x", "r", "p", "q"):
        assert heap[name]["held"], heap[name]
    # 2^17 rows of 8 doubles, less the pages at its edges, which belong to others as well.
    assert heap["a"]["bytes"] >= (8 << 20) - 2 * 4096


def test_a_rehearsal_calls_a_node_by_all_that_it_stands_for() -> None:
    """A plan's rule for `ldram` read as one for `rdram` when all of its nodes were mapped to node 0."""
    given = {"rdram": 0, "ldram": 0, "cxl": 1}
    matches: list[NodeMatchDoc] = [
        {"memory": name, "node": node, "kind": "dram", "because": "as given"} for name, node in given.items()
    ]
    assert node_names(matches) == {0: "rdram/ldram", 1: "cxl"}


def test_a_memory_that_may_be_any_node_is_refused_and_the_program_does_not_run(run: Run, folder: Path) -> None:
    (folder / "far.plan.toml").write_text(
        'version = 1\nmachine = "liu-a"\nprofile = "x"\npolicy = "by hand"\nnodes = ["a", "b", "c"]\n'
        'default = { bind = ["c"] }\n[predicted]\ntime_s = 1.0\nlow_s = 1.0\nhigh_s = 1.0\nthreads = 1\n'
        "bytes = [0, 0, 0]\n"
    )
    command = ("--", "sh", "-c", "echo here; exit 3")
    result = run("run", "--plan", "far.plan.toml", *command)
    if len(list(Path("/sys/devices/system/node").glob("node[0-9]*"))) > 2:
        pytest.skip("this machine has three nodes, as the plan has")
    assert (result.returncode, result.stdout) == (2, "")
    assert "c: the plan does not say what it is" in result.stderr
    assert "--node c=0" in result.stderr
    rehearsed = run("run", "--plan", "far.plan.toml", "--node", "c=0", *command)
    assert (rehearsed.returncode, rehearsed.stdout) == (3, "here\n")
    assert "Here c is node 0 (dram, as given)" in " ".join(rehearsed.stderr.split())
    nowhere = run("run", "--plan", "far.plan.toml", "--node", "c=63", *command)
    assert nowhere.returncode == 2
    assert "this machine has no node 63" in nowhere.stderr


def test_a_plan_of_another_program_says_what_was_never_asked_for(run: Run, plan: Path) -> None:
    result = run("run", "--plan", plan, "--", "true")
    assert result.returncode == 0
    assert "never asked for" in result.stderr


TWO = (
    'version = 1\nmachine = "m"\nprofile = "p"\npolicy = "by hand"\nnodes = ["dram", "cxl"]\ndefault = "first_touch"\n'
    "[predicted]\ntime_s = 1.0\nlow_s = 1.0\nhigh_s = 1.0\nthreads = 1\nbytes = [0, 0]\n"
    '[[rules]]\nobject = "big"\nsize_bytes = 1\nselect = { size_at_least = 8000000 }\n'
)
"""The beginning of a plan for two nodes with one rule, without its place."""

REHEARSE = ("--node", "dram=0", "--node", "cxl=0")
"""Both nodes of the plan are node 0 here: all is done as on two."""


@pytest.fixture
def big(folder: Path) -> Path:
    """A program that asks for 16 MiB, touches half of them, and gives them back."""
    source = folder / "big.c"
    source.write_text(
        "#include <stdlib.h>\n#include <string.h>\n#include <stdio.h>\n#include <unistd.h>\n"
        "int main(int words, char **word) {\n  char *block = malloc(16 << 20);\n  memset(block, 1, 8 << 20);\n"
        '  puts("ready"); fflush(stdout);\n  if (words > 1) sleep(atoi(word[1]));\n'
        "  if (words > 2) _exit(atoi(word[2]));\n  free(block);\n  return 0;\n}\n"
    )
    program = folder / "big"
    subprocess.run(["cc", "-O1", "-o", program, source], check=True)
    return program


def two_nodes(folder: Path, place: str, more: str = "") -> Path:
    path = folder / "two.plan.toml"
    path.write_text(TWO + f"place = {{ {place} }}\n" + more)
    return path


def only_one_node() -> bool:
    return len(list(Path("/sys/devices/system/node").glob("node[0-9]*"))) == 1


@pytest.mark.skipif(not only_one_node(), reason="this machine has more than one memory node")
def test_one_node_is_said_and_only_rehearsed(run: Run, folder: Path, big: Path) -> None:
    plan = two_nodes(folder, "weighted = { dram = 3, cxl = 1 }")
    refused = run("run", "--plan", plan, "--json", "--", big)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "cxl: cxl; this machine has no node of its kind" in refused.stderr
    assert "--node cxl=0" in refused.stderr
    result = run("run", "--plan", plan, "--node", "cxl=0", "--json", "--", big)
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    (said,) = report["warnings"]
    assert (said["kind"], said["node"], said["planned_nodes"]) == ("one_node", 0, 2)
    assert "one memory node (node 0)" in said["text"]
    assert "tierloom lab" in said["text"]
    assert report["memories"] == [
        {"memory": "dram", "node": 0, "kind": "dram", "because": "by its name"},
        {"memory": "cxl", "node": 0, "kind": "dram", "because": "as given"},
    ]


def test_shares_of_one_node_are_rehearsed_as_one_policy(run: Run, folder: Path, big: Path) -> None:
    plan = two_nodes(folder, "weighted = { dram = 3, cxl = 1 }")
    result = run("run", "--plan", plan, *REHEARSE, "--json", "--", big)
    (rule, _) = json.loads(result.stdout)["rules"]
    assert rule["held"], rule
    assert rule["how"] == {"policy": 1}
    seen = rule["residency"]
    # Sampled: one page of each of 1024 parts.
    assert (seen["objects"], seen["looked"], seen["elsewhere"]) == (1, 1024, 0)
    assert seen["by_node"].keys() == {"0"}
    assert rule["asked"] == {"0": 1.0}


def test_memory_that_is_never_touched_is_told_from_memory_elsewhere(run: Run, folder: Path, big: Path) -> None:
    result = run("run", "--plan", two_nodes(folder, 'bind = ["dram"]'), "--json", "--", big)
    seen = json.loads(result.stdout)["rules"][0]["residency"]
    assert seen["elsewhere"] == 0
    assert 0.4 < seen["absent"] / seen["looked"] < 0.6


@pytest.mark.live
def test_a_program_that_leaves_without_a_word_was_looked_at_before(run: Run, folder: Path, big: Path) -> None:
    words = ("--watch", "0.2", "--json", "--", big, "1", "5")
    result = run("run", "--plan", two_nodes(folder, 'bind = ["dram"]'), *words)
    assert result.returncode == 5
    seen = json.loads(result.stdout)["rules"][0]["residency"]
    assert seen["objects"] == 1
    assert 0 < seen["stale_s"] < 1.5
    assert "pages are on" in result.stderr


def test_pages_are_held_and_the_consequence_is_said(run: Run, folder: Path, big: Path) -> None:
    result = run("run", "--plan", two_nodes(folder, 'bind = ["dram"]'), "--hold", "--json", "--", big)
    report = json.loads(result.stdout)
    assert report["rules"][0]["locked"] == 1 or "RLIMIT_MEMLOCK" in report["rules"][0]["problems"][0]
    assert "objects_locked" in {warning["kind"] for warning in report["warnings"]}


@pytest.mark.live
def test_a_phase_moves_only_what_pays(run: Run, folder: Path, big: Path) -> None:
    phase = (
        '[[phases]]\nname = "late"\nstart_s = 0.1\ngain_s = {}\n'
        'moves = [{{ object = "big", place = {{ prefer = "dram" }} }}]\n'
    )
    plan = two_nodes(folder, 'bind = ["dram"]', phase.format("0.0") + phase.format("100.0"))
    result = run("run", "--plan", plan, "--json", "--", big, "1")
    first, second = json.loads(result.stdout)["phases"]
    assert "longer than the new places save" in first["skipped"]
    assert second["skipped"] is None
    assert second["expected_s"] > 0


@pytest.mark.live
@pytest.mark.parametrize("meant_before", [True, False])
def test_a_running_program_takes_a_new_plan(
    run: Run, executable: Path, folder: Path, big: Path, *, meant_before: bool
) -> None:
    plan = two_nodes(folder, 'bind = ["dram"]')
    of_the_size = plan.read_text()
    if not meant_before:
        plan.write_text(of_the_size.replace("8000000", "800000000"))
    command = [
        str(executable),
        "run",
        "--plan",
        str(plan),
        "--json",
        "--",
        "sh",
        "-c",
        f"echo $$ > pid; exec {big} 20 3",
    ]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stderr
        assert running.stdout
        assert running.stderr.readline() == "ready\n"
        pid = int((folder / "pid").read_text())
        plan.write_text(of_the_size.replace('bind = ["dram"]', "weighted = { dram = 2, cxl = 1 }"))
        done = run("apply", "--pid", pid, "--plan", plan, *REHEARSE, "--json")
        text = run("apply", "--pid", pid, "--plan", plan, *REHEARSE)
        assert done.returncode == 0, done.stderr
        (rule, _) = json.loads(done.stdout)["rules"]
        assert (rule["objects"], rule["moved_bytes"], rule["problems"]) == (1, 0, [])
        assert (8 << 20) <= rule["present_bytes"] < (9 << 20)
        assert "1 object\n" in text.stdout
        os.kill(pid, signal.SIGTERM)
        report = json.loads(running.stdout.read())
    assert report["rules"][0]["asked"] == {"0": 1.0}
    assert report["rules"][0]["how"] == {"move": 1}


def test_only_programs_that_were_placed_can_be_placed_anew(run: Run, folder: Path) -> None:
    plan = two_nodes(folder, 'bind = ["dram"]')
    for pid, told in ((os.getpid(), "does not run under tierloom"), (4194303, "no such process")):
        result = run("apply", "--pid", pid, "--plan", plan)
        assert result.returncode == 2
        assert told in result.stderr


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("run", "--plan", "none.toml", "--", "true"), 2, "No such file"),
        (("run", "--plan", "broken.toml", "--", "true"), 2, "broken.toml"),
        (("run", "--", "true"), 2, "--plan"),
        (("run", "--plan", "good.toml", "--", "no-such-program"), 127, "no such program"),
        (("run", "--plan", "good.toml"), 2, "Missing argument"),
        (("run", "--plan", "good.toml", "--node", "b=0", "--", "true"), 2, "its nodes are a"),
        (("run", "--plan", "good.toml", "--node", "a=x", "--", "true"), 2, "no node number"),
    ],
)
def test_what_cannot_run(run: Run, folder: Path, words: tuple[str, ...], code: int, told: str) -> None:
    good = (
        'version = 1\nmachine = "m"\nprofile = "p"\npolicy = "by hand"\nnodes = ["a"]\ndefault = "first_touch"\n'
        "[predicted]\ntime_s = 1.0\nlow_s = 1.0\nhigh_s = 1.0\nthreads = 1\nbytes = [0]\n"
    )
    (folder / "good.toml").write_text(good)
    (folder / "broken.toml").write_text(good.replace('"first_touch"', '{ bind = ["z"] }'))
    result = run(*words)
    assert result.returncode == code, result.stderr
    assert told in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""
