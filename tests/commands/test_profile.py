"""`tierloom profile`: the program is left alone, and what it did is told."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from support import Run, lacking

import tierloom
from tierloom import measured_hosts
from tierloom.commands import profile_names
from tierloom.nouns import Machine
from tierloom.nouns.profile import UNKNOWN_OFFSET

pytestmark = pytest.mark.smoke


def profile_of(folder: Path, name: str) -> dict:
    return json.loads((folder / name / "profile.json").read_text(encoding="utf-8"))


def test_the_program_keeps_its_streams_and_its_exit_code(run: Run, folder: Path) -> None:
    result = run("profile", "-o", "p.profile", "--", "sh", "-c", "cat; echo err >&2; exit 7", stdin="in\n")
    assert result.stdout == "in\n"
    assert "err\n" in result.stderr
    assert result.returncode == 7
    assert profile_of(folder, "p.profile")["program"]["exit_code"] == 7


def test_the_table_and_the_next_command_go_to_stderr(run: Run, workloads: Path) -> None:
    result = run("profile", "-o", "s.profile", "--", workloads / "stream", "--iterations", "3")
    assert result.returncode == 0
    assert "verification" in result.stdout
    assert "Data objects of s" in result.stderr
    assert "next: tierloom plan s.profile --machine" in result.stderr


def test_a_program_ahead_of_which_is_looked_keeps_its_output(run: Run, folder: Path) -> None:
    numbers = "\n".join(str(number * 7919 % 100_003) for number in range(50_000))
    result = run("profile", "--bursts", "10%", "-o", "p.profile", "--", "sort", "-n", stdin=numbers)
    assert result.returncode == 0
    assert [int(line) for line in result.stdout.split()] == sorted(map(int, numbers.split()))
    assert profile_of(folder, "p.profile")["objects"]


def repeated(
    executable: Path, folder: Path, *words: object, stdin: str = os.devnull
) -> subprocess.CompletedProcess[str]:
    """`tierloom profile` with runs before it, whose input is a file."""
    command = [str(executable), "profile", "--repeat", "2", "-o", "p.profile", *map(str, words)]
    with Path(stdin).open(encoding="utf-8") as given:
        return subprocess.run(command, stdin=given, cwd=folder, capture_output=True, text=True, check=False)


def test_runs_before_it_read_the_same_input_and_only_the_profiled_one_is_heard(executable: Path, folder: Path) -> None:
    (folder / "in").write_text("left out\nread\n", encoding="utf-8")
    script = "read line; cat; echo $line >> seen"
    result = repeated(executable, folder, "--keep", "p.recording", "--", "sh", "-c", script, stdin=str(folder / "in"))
    assert result.returncode == 0, result.stderr
    assert result.stdout == "read\n"
    assert (folder / "seen").read_text(encoding="utf-8") == "left out\n" * 3
    took = profile_of(folder, "p.profile")["program"]["unprofiled_s"]
    assert len(took) == 2
    assert all(time_s > 0.0 for time_s in took)
    again = tierloom.analyse(folder / "p.recording").profile.data["program"]
    assert again["unprofiled_s"] == took


def test_runs_before_it_that_end_otherwise_do_not_count(executable: Path, folder: Path) -> None:
    result = repeated(executable, folder, "--", "sh", "-c", "test -e made || { touch made; exit 3; }")
    assert result.returncode == 0, result.stderr
    assert len(profile_of(folder, "p.profile")["program"]["unprofiled_s"]) == 1
    assert "1 of 2 runs without the profiler ended otherwise" in " ".join(result.stderr.split())


def test_input_that_only_one_run_can_read_is_kept_for_no_other(run: Run, folder: Path) -> None:
    result = run("profile", "--repeat", "2", "-o", "p.profile", "--", "cat", stdin="in\n")
    assert result.returncode == 2
    assert "it is no file" in result.stderr
    assert not (folder / "p.profile").exists()


def test_a_program_that_cannot_be_started_is_told_as_without_runs_before_it(executable: Path, folder: Path) -> None:
    result = repeated(executable, folder, "--", "./nosuch")
    assert result.returncode == 127
    assert "there is no such program" in result.stderr


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("./app --size 3", "app"),
        ("python3 sums.py", "sums"),
        ("/usr/bin/python3.13 -W ignore -u src/words.py sums.py", "words"),
        ("python3 -m http.server 80", "http.server"),
        ("python3 -c pass sums.py", "python3"),
        ("bash -x sums.py", "sums"),
        ("perl -e 1 sums.py", "perl"),
        ("node gone.js", "node"),
        ("sort sums.py", "sort"),
    ],
)
def test_a_script_is_a_program_of_its_own(folder: Path, command: str, name: str) -> None:
    (folder / "src").mkdir()
    for script in ("sums.py", "src/words.py"):
        (folder / script).write_text("")
    assert profile_names.default_name(command.split()) == f"{name}.profile"


def test_the_profile_of_another_command_is_not_replaced_without_a_word(run: Run, folder: Path) -> None:
    (folder / "one.sh").write_text("exit 0\n")
    assert "replaces" not in run("profile", "--", "sh", "one.sh").stderr
    assert "replaces" not in run("profile", "--", "sh", "one.sh").stderr, "the same command"
    other = " ".join(run("profile", "--", "sh", "one.sh", "a b").stderr.split())
    assert "one.profile was the profile of `sh one.sh`, which this one replaces" in other
    third = " ".join(run("profile", "--", "sh", "one.sh").stderr.split())
    assert "one.profile was the profile of `sh one.sh 'a b'`, which" in third


def test_json_is_the_profile_and_nothing_else(run: Run, folder: Path) -> None:
    result = run("profile", "--json", "-o", "p.profile", "--", "echo", "hello")
    assert json.loads(result.stdout) == {"kind": "profile", **profile_of(folder, "p.profile")}
    assert "hello" in result.stderr


def test_cache_and_memory_are_as_they_were_measured(run: Run, folder: Path) -> None:
    assert run("profile", "--", "true").returncode == 0
    program = profile_of(folder, "true.profile")["program"]
    host, reported = program["host"], program["llc_bytes"]
    machine = Machine.load("liu-a").data
    machine["host"] = host
    for socket in machine["sockets"]:
        socket["llc_per_core_bytes"]["value"] = reported // 2
    assert measured_hosts.keep(Machine.from_data(machine)) is not None
    assert run("profile", "--", "true").returncode == 0
    program = profile_of(folder, "true.profile")["program"]
    assert program["llc_bytes"] == reported // 2
    assert program["memory_ns"] == min(path["idle_ns"]["value"] for path in machine["paths"])


def test_the_folder_is_named_after_the_program(run: Run, folder: Path) -> None:
    assert run("profile", "--", "true").returncode == 0
    assert profile_of(folder, "true.profile")["name"] == "true"
    assert run("profile", "--", "true").returncode == 0, "a profile may be written again"


def test_a_folder_that_holds_something_else_is_left_alone(run: Run, folder: Path) -> None:
    (folder / "data").mkdir()
    (folder / "data" / "precious").write_text("mine")
    result = run("profile", "-o", "data", "--", "true")
    assert result.returncode == 2
    assert "is no profile" in result.stderr
    assert "hint:" in result.stderr


@pytest.mark.parametrize(
    ("program", "code", "told"),
    [("no-such-program", 127, "no such program"), ("./plain.txt", 126, "chmod"), ("./sub", 126, "sub")],
)
def test_what_cannot_start_ends_as_in_a_shell(run: Run, folder: Path, program: str, code: int, told: str) -> None:
    (folder / "plain.txt").write_text("text")
    (folder / "sub").mkdir()
    result = run("profile", "-o", "p.profile", "--", program)
    assert result.returncode == code
    assert told in result.stderr
    assert "hint:" in result.stderr
    assert "Traceback" not in result.stderr
    assert not (folder / "p.profile").exists()


def test_what_was_recorded_of_a_killed_program_is_kept(run: Run, folder: Path) -> None:
    result = run(
        "profile", "-o", "p.profile", "--", "sh", "-c", "i=0; while [ $i -lt 40000 ]; do i=$((i+1)); done; kill -9 $$"
    )
    assert result.returncode == 128 + 9
    profile = profile_of(folder, "p.profile")
    assert profile["program"]["exit_code"] == 137
    assert profile["sampling"]["samples"] > 0


def test_a_program_that_crashes_ends_with_its_signal(run: Run, folder: Path) -> None:
    result = run("profile", "-o", "p.profile", "--", "sh", "-c", "kill -SEGV $$")
    assert result.returncode == 128 + 11
    assert profile_of(folder, "p.profile")["program"]["exit_code"] == 139


@pytest.fixture
def static_program(folder: Path) -> Path:
    source = folder / "static.c"
    source.write_text(
        "#include <stdio.h>\nstatic double a[1 << 20];\n"
        "int main(void) { double s = 0; for (int r = 0; r < 60; r++)\n"
        'for (int i = 0; i < 1 << 20; i++) { a[i] += i; s += a[i]; }\nprintf("%g\\n", s); }\n'
    )
    built = subprocess.run(["gcc", "-O2", "-static", "-o", folder / "static", source], capture_output=True, check=False)
    if built.returncode != 0:
        pytest.skip(lacking("gcc") or "no static C library here")
    return folder / "static"


def test_a_static_program_is_profiled_as_far_as_it_goes(run: Run, folder: Path, static_program: Path) -> None:
    result = run("profile", "-o", "p.profile", "--", static_program)
    assert result.returncode == 0
    assert "statically linked" in result.stderr
    objects = {item["name"]: item for item in profile_of(folder, "p.profile")["objects"]}
    assert any("a" in name.split(":")[-1] and item["size_bytes"] == 8 << 20 for name, item in objects.items())


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a set-user-id program of another user")
def test_a_set_user_id_program_says_what_could_not_be_seen(run: Run, folder: Path) -> None:
    program = folder / "suid"
    program.write_bytes(Path("/bin/true").read_bytes())
    os.chown(program, 65534, 65534)
    program.chmod(0o4755)
    result = run("profile", "-o", "p.profile", "--", program)
    assert result.returncode == 0
    assert "owner's rights" in result.stderr
    assert (folder / "p.profile").exists()


def test_children_and_exec_are_followed(run: Run, folder: Path, workloads: Path) -> None:
    script = f"{workloads}/stream --iterations 3 & wait; exec {workloads}/gather --iterations 1"
    result = run("profile", "-o", "p.profile", "--", "sh", "-c", script)
    assert result.returncode == 0
    assert result.stdout.count("verification") == 2
    profile = profile_of(folder, "p.profile")
    assert sum(item["size_bytes"] for item in profile["objects"]) > 100 << 20, "both programs have large arrays"


def test_options_of_the_program_are_the_program_s(run: Run) -> None:
    result = run("profile", "-o", "p.profile", "--", "echo", "--json", "-o", "x")
    assert result.stdout == "--json -o x\n"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "Missing argument"),
        (("--hz", "0", "--", "true"), "--hz"),
        (("--hz", "1000000", "--", "true"), "--hz"),
        (("--backend", "magic", "--", "true"), "perf"),
        (("--bursts", "30%", "--", "true"), "give more than 0 % and at most 20 %"),
        (("--bursts", "often", "--", "true"), "`often` is not a share"),
    ],
)
def test_a_wrong_request_ends_with_2(run: Run, words: tuple[str, ...], told: str) -> None:
    result = run("profile", *words)
    assert result.returncode == 2
    assert told in result.stderr


def test_samples_are_a_numpy_array(run: Run, folder: Path, workloads: Path) -> None:
    import tierloom

    assert run("profile", "-o", "s.profile", "--", workloads / "stream", "--iterations", "5").returncode == 0
    profile = tierloom.Profile.load(folder / "s.profile")
    samples = profile.samples()
    assert len(samples) == profile.data["sampling"]["samples"]
    assert samples.dtype.names == ("time_ns", "offset", "thread", "object", "access")
    assert (samples["object"] < len(profile.data["objects"])).all()
    for position, item in enumerate(profile.data["objects"]):
        offsets = samples["offset"][samples["object"] == position]
        assert (offsets[offsets != UNKNOWN_OFFSET] < item.get("address_bytes", item["size_bytes"])).all()
    assert np.mean(samples["offset"] == UNKNOWN_OFFSET) < 0.1, "loads of this program leave their index as it is"


def test_one_thread_in_parallel_regions_is_told_and_more_share_them_out(
    run: Run, folder: Path, workloads: Path
) -> None:
    options = ("--threads", "1", "--iterations", "10")
    assert run("profile", "-o", "s.profile", "--", workloads / "stream", *options).returncode == 0
    phases = profile_of(folder, "s.profile")["phases"]
    inside_s = sum(phase["in_regions"] * (phase["end_s"] - phase["start_s"]) for phase in phases)
    assert inside_s > 0.5 * sum(phase["end_s"] - phase["start_s"] for phase in phases)
    times = {}
    for threads in ("1", "8"):
        planned = run("plan", "s.profile", "--machine", "liu-a", "--threads", threads, "--policies", "local", "--json")
        times[threads] = json.loads(planned.stdout)["policies"][0]["prediction"]["time_s"]
    assert times["8"] < 0.7 * times["1"]
    told = run("plan", "s.profile", "--machine", "liu-a", "--threads", "8").stdout
    assert "parallel regions of OpenMP" in " ".join(told.split())
