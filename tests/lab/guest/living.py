"""What happens to placed memory while programs run: new plans, the kernel's own migration, other people's weights."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path

from placement import at_least, host_weights, weighted
from placing import (
    MIB,
    NODES,
    PAGE,
    TIERLOOM,
    Shown,
    counters,
    huge_unit,
    law,
    node_one,
    obeys,
    parse,
    plan,
    program,
    rule,
    run,
    skip,
)

TOPOLOGIES = ("two-tier", "cxl")

DEMOTION = Path("/sys/kernel/mm/numa/demotion_enabled")
BALANCING = Path("/proc/sys/kernel/numa_balancing")
HINTED = 32 * MIB
"""Much more than all that else takes hint faults while a program runs."""

HUGE = Path("/sys/kernel/mm/transparent_hugepage/enabled")


@contextmanager
def setting(path: Path, value: str) -> Iterator[None]:
    """A file of /proc or /sys with another content for a while."""
    if not path.exists():
        skip(f"this kernel has no {path}")
    before = path.read_text()
    path.write_text(value)
    try:
        yield
    finally:
        path.write_text(before.split("[")[-1].split("]")[0])


@contextmanager
def started(plan_file: Path, *words: str, options: tuple[str, ...] = ()) -> Iterator[subprocess.Popen[str]]:
    """A program under a plan that waits for the file `go`, and is ended if nobody makes it go."""
    command = [str(TIERLOOM), "run", "--plan", str(plan_file), *NODES, *options, "--", str(program()), *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        try:
            yield running
        finally:
            if running.poll() is None:
                running.kill()


def child_of(running: subprocess.Popen[str]) -> int:
    """The program that `tierloom run` started."""
    while running.poll() is None:
        found = Path(f"/proc/{running.pid}/task/{running.pid}/children").read_text().split()
        if found:
            return int(found[0])
        time.sleep(0.1)
    raise AssertionError


def wait_for(running: subprocess.Popen[str]) -> str:
    """Until the program says that it waits; what it said before."""
    said = ""
    for line in running.stdout:
        if line == "waiting\n":
            return said
        said += line
    raise AssertionError(running.stderr.read())


def check_a_running_program_gets_a_new_plan() -> None:
    """All pages of an object that is there go where the new plan's law wants them, and what comes later does too."""
    node_one()
    first = plan(rule("a", at_least(12 * MIB), 'bind = ["n0"]'))
    second = plan(rule("a", at_least(12 * MIB), weighted(1, 3)))
    words = (f"heap:a:{12 * MIB}", "show", "wait:go", f"heap:b:{13 * MIB}", "show")
    with started(first, *words) as running:
        wait_for(running)
        command = [str(TIERLOOM), "apply", "--pid", str(child_of(running)), "--plan", str(second), *NODES, "--json"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        print(done.stderr)
        told = json.loads(done.stdout)["rules"][0]
        Path("go").touch()
        out, words_told = running.communicate()
    print(words_told[-1500:])
    assert running.returncode == 0
    shown = parse(out)
    for name in ("a", "b"):
        obeys(shown[name], [(0, 1), (1, 3)], huge_unit(shown[name]))
    assert told["objects"] == 1
    assert told["present_bytes"] == len(shown["a"].nodes) * PAGE
    assert told["moved_bytes"] == shown["a"].nodes.count(1) * PAGE


def check_pages_that_were_there_are_dealt_out_one_by_one() -> None:
    """`mbind(MPOL_INTERLEAVE, MPOL_MF_MOVE)` would leave them: any node of the set is good enough for it.

    With huge pages off: a block that grows is mapped elsewhere, its old huge pages then lie across units.
    """
    node_one()
    there, grown = 6 * MIB, 9 * MIB
    with setting(HUGE, "never"):
        dealt = plan(rule("g", at_least(8 * MIB), 'interleave = ["n0", "n1"]'))
        shown, report = run(dealt, f"heap:g:{there}", f"grow:g:{grown}", "show")
    old = there // PAGE - 1
    obeys(Shown(shown["g"].start, shown["g"].nodes[:old]), [(0, 1), (1, 1)])
    new = shown["g"].nodes[old + 1 :]
    assert all(one != other for one, other in pairwise(new)), "the kernel's own turn need not go on where ours ends"
    assert report["rules"][0]["moved_bytes"] == shown["g"].nodes[:old].count(1) * PAGE


def check_host_weights_are_set_and_put_back() -> None:
    """With huge pages off, so that the kernel's own law is page by page too."""
    node_one()
    before = host_weights()
    if not before:
        skip("this kernel has no weighted interleave")
    with setting(HUGE, "never"):
        weighed = plan(rule("w", at_least(4 * MIB), weighted(5, 2)))
        shown, report = run(weighed, f"mmap:w:{8 * MIB}", "show", words=("--set-host-weights",))
    obeys(shown["w"], [(0, 5), (1, 2)])
    assert report["rules"][0]["how"] == {"policy": 1}, "the kernel did it"
    assert host_weights() == before


def check_host_weights_are_put_back_after_a_kill() -> None:
    node_one()
    before = host_weights()
    if not before:
        skip("this kernel has no weighted interleave")
    weighed = plan(rule("w", at_least(4 * MIB), weighted(9, 4)))
    for number, sent_to in ((signal.SIGKILL, child_of), (signal.SIGINT, lambda running: running.pid)):
        with started(weighed, f"mmap:w:{8 * MIB}", "wait:never", options=("--set-host-weights",)) as running:
            wait_for(running)
            assert host_weights() != before
            os.kill(sent_to(running), number)
            running.communicate()
        assert host_weights() == before, number


def hint_faults(before: tuple[str, ...], counted: tuple[str, ...], *rules: str) -> int:
    """Hint faults of the whole guest while a program does some actions: the rest of the guest takes some, too.

    It counts until the program says that it is through with them: `tierloom run` looks at all it has once more
    to report.
    """
    with started(plan(*rules), *before, "wait:go", *counted, "wait:gone") as running:
        wait_for(running)
        at_first = counters()["numa_hint_faults"]
        Path("go").touch()
        wait_for(running)
        taken = counters()["numa_hint_faults"] - at_first
        Path("gone").touch()
        running.communicate()
    Path("go").unlink()
    Path("gone").unlink()
    assert running.returncode == 0, running.returncode
    return taken


def check_nobody_takes_hint_faults_on_an_interleaved_object() -> None:
    """`task_numa_work` passes by every range whose policy is not the default one or asks for them.

    What it marked while the object was being dealt out still faults, once: that is over before it counts.
    """
    node_one()
    used = (f"heap:s:{HINTED}", "spin:5"), ("spin:20",)
    with setting(BALANCING, "1"), setting(HUGE, "never"):
        others = hint_faults((), ("idle:20",))
        default = hint_faults(*used) - others
        interleaved = hint_faults(*used, rule("s", at_least(HINTED), weighted(1, 1))) - others
    print(f"{others} of others, {default} on a first-touch object, {interleaved} on an interleaved one")
    if default < HINTED // PAGE // 2:
        skip(f"the kernel took {default} hint faults even without a plan")
    assert interleaved < default / 10


def check_hint_faults_can_be_asked_for() -> None:
    """An interleaved object that the kernel may migrate: placed page by page, then bound to all its nodes."""
    node_one()
    options = "hint_faults = true"
    shown, report = run(plan(rule("m", at_least(MIB), weighted(1, 1), options)), f"mmap:m:{MIB + 65536}", "show")
    obeys(shown["m"], [(0, 1), (1, 1)], huge_unit(shown["m"]))
    assert report["rules"][0]["how"] == {"populate": 1}
    assert any(warning["kind"] == "may_migrate" for warning in report["warnings"])


def check_huge_pages_stay_huge() -> None:
    """Stripes are whole huge pages, so the kernel keeps them."""
    node_one()
    with setting(HUGE, "always"):
        before = counters()["thp_fault_alloc"]
        shown, _ = run(plan(rule("h", at_least(32 * MIB), weighted(2, 1))), f"mmap:h:{32 * MIB}", "show")
        grown = counters()["thp_fault_alloc"] - before
        obeys(shown["h"], [(0, 2), (1, 1)], 2 * MIB)
    assert grown >= 15, grown


@contextmanager
def group() -> Iterator[Path]:
    """A control group with a memory controller (version 2)."""
    mount = Path.cwd() / "groups"
    mount.mkdir()
    if subprocess.run(["mount", "-t", "cgroup2", "none", mount], check=False).returncode:
        skip("no control groups of version 2 can be mounted")
    try:
        if "memory" not in (mount / "cgroup.controllers").read_text().split():
            skip("the kernel has no memory controller")
        (mount / "cgroup.subtree_control").write_text("+memory")
        ours = mount / "pressed"
        ours.mkdir()
        yield ours
        ours.rmdir()
    finally:
        subprocess.run(["umount", "-l", mount], check=False)
        mount.rmdir()


def lost_to_demotion(group: Path, words: tuple[str, ...]) -> float:
    """Share of an interleaved, idle object that leaves node 0 when its group is asked to give up memory.

    Only the program is in the group: one that watches it from there would lose its code to the far node.
    """
    placed = plan(rule("o", at_least(24 * MIB), weighted(1, 1)))
    inside = ["sh", "-c", f'echo $$ > {group}/cgroup.procs; exec "$@"', "sh", str(program())]
    actions = [f"heap:o:{24 * MIB}", "show", "wait:go", "show"]
    command = [str(TIERLOOM), "run", "--plan", str(placed), *NODES, *words, "--", *inside, *actions]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        first = parse(wait_for(running))["o"]
        before_it = counters()
        for _ in range(3):
            with suppress(OSError):  # less than that could be had
                (group / "memory.reclaim").write_text(str(8 * MIB))
        demoted = {name: value - before_it[name] for name, value in counters().items() if "demote" in name}
        Path("go").touch()
        out, _ = running.communicate()
    Path("go").unlink()
    before, after = first.nodes.count(0), parse(out)["o"].nodes.count(0)
    print(f"{words}: {before} pages on node 0 before and {after} after; {demoted}")
    assert before > 0
    return (before - after) / before


def check_a_held_object_is_not_demoted() -> None:
    """Demotion takes no notice of memory policies (`demote_folio_list` of mm/vmscan.c); locked pages it passes by."""
    node_one()
    with setting(DEMOTION, "1"), setting(HUGE, "never"), group() as ours:
        loose = lost_to_demotion(ours, ())
        held = lost_to_demotion(ours, ("--hold",))
    print(f"lost: {loose:.1%} without, {held:.1%} with --hold")
    assert held == 0.0
    if loose == 0.0:
        skip("the kernel demoted nothing, so there was nothing to hold against")


def check_phases_move_what_they_name() -> None:
    """The second phase's place is taken when its time has come and its gain pays for moving."""
    node_one()
    phases = (
        '\n[[phases]]\nname = "dear"\nstart_s = 1.0\ngain_s = 0.0\n'
        'moves = [{ object = "p", place = { bind = ["n1"] } }]\n'
        '\n[[phases]]\nname = "second"\nstart_s = 2.0\ngain_s = 1000.0\n'
        'moves = [{ object = "p", place = { bind = ["n1"] } }]\n'
    )
    path = plan(rule("p", at_least(4 * MIB), 'bind = ["n0"]'), phases)
    shown, report = run(path, f"heap:p:{8 * MIB}", "until:1", "show")
    assert shown["p"].share(1) == 1.0
    assert [phase["skipped"] is None for phase in report["phases"]] == [False, True], report["phases"]


def check_the_law_here_is_the_kernels() -> None:
    """This file's law against the kernel's own weighted interleave, without Tierloom."""
    node_one()
    assert [law(page * PAGE, [(1, 1), (0, 3)]) for page in range(8)] == [0, 0, 0, 1, 0, 0, 0, 1]
