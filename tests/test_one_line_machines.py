"""Machines that somebody writes by hand: the line, and the file of the documentation."""

from __future__ import annotations

import json
import re
from pathlib import Path

import click.testing
import pytest
from support import ROOT, Tierloom

from tierloom import Machine
from tierloom.catalog import one_line
from tierloom.commands import main
from tierloom.errors import MachineError

LINE = "dram 512GiB 100ns 300GB/s, cxl 1TiB 250ns 60GB/s"


def test_a_line_is_a_machine_of_the_figures_in_it() -> None:
    machine = Machine.load(LINE)
    assert [(m["name"], m["kind"], m["capacity_bytes"]["value"]) for m in machine.data["memories"]] == [
        ("dram", "dram", 512 << 30),
        ("cxl", "cxl", 1 << 40),
    ]
    assert [path["idle_ns"]["value"] for path in machine.data["paths"]] == [100.0, 250.0]
    assert [machine.curve("socket0", name).peak_gb_s for name in ("dram", "cxl")] == [300.0, 60.0]
    assert {path["idle_ns"]["source"] for path in machine.data["paths"]} == {"given"}


def test_what_a_line_does_not_say_is_assumed_and_far_memory_is_slower() -> None:
    machine = Machine.load("16 cores, dram=64GiB, cxl=128GiB, cxl=128GiB")
    assert [memory["name"] for memory in machine.data["memories"]] == ["dram", "cxl", "cxl1"]
    assert machine.data["sockets"][0]["cores"]["value"] == 16
    near, far, _ = machine.data["paths"]
    assert far["idle_ns"]["value"] > near["idle_ns"]["value"]
    assert {(path["idle_ns"]["kind"], path["idle_ns"]["source"]) for path in (near, far)} == {("assumed", "assumed")}


def test_a_semicolon_makes_another_socket() -> None:
    machine = Machine.load("8 cores, dram 64GiB 100ns 300GB/s, cxl 1TiB; 16 cores, dram 32GiB")
    assert [(each["name"], each["cores"]["value"]) for each in machine.data["sockets"]] == [
        ("socket0", 8),
        ("socket1", 16),
    ]
    homes = {memory["name"]: memory["socket"] for memory in machine.data["memories"]}
    assert homes == {"dram": "socket0", "cxl": "socket0", "dram1": "socket1"}
    idle = {(path["from"], path["to"]): path["idle_ns"] for path in machine.data["paths"]}
    assert len(idle) == 6
    assert idle["socket1", "dram"]["value"] == 100 + one_line.HOP_NS
    assert idle["socket1", "dram"]["kind"] == "assumed"
    assert "one more hop" in idle["socket1", "dram"]["how"]
    assert machine.nearest("socket1") == "dram1"


def test_what_was_made_of_two_drams_on_one_socket_is_said(tierloom: Tierloom, folder: Path) -> None:
    told = "note: dram and dram1 are memories of one socket; a semicolon between them makes two sockets"
    for words in (("plan", "mg-e", "-m"), ("machine", "new")):
        assert told in " ".join(tierloom(*words, "dram 512GiB, dram 512GiB").stderr.split())
        assert "note:" not in tierloom(*words, "dram 512GiB; dram 512GiB").stderr
        assert "note:" not in tierloom(*words, "dram 512GiB, cxl 512GiB").stderr
    assert len(list(folder.glob("dram-512GiB[-+]dram-512GiB.toml"))) == 2, "both have a name of their own"


def test_a_range_does_not_pass_for_the_error_of_figures_that_nobody_measured(tierloom: Tierloom, folder: Path) -> None:
    def said(machine: str) -> str:
        plan = tierloom("plan", "mg-e", "-t", "8", "--fast-memory", "50%", "-m", machine, "-o", str(folder / "p.toml"))
        return " ".join(plan.stdout.split())

    told = "latency and bandwidth of dram (given) and cxl (latency given, bandwidth assumed) were never measured"
    assert told in said("dram 512GiB 100ns 300GB/s, cxl 1TiB 250ns")
    assert "never measured" not in said("liu-a")


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("dram 64GiB, cxl 12GB 3m", "has `3m`, which is no size"),
        ("dram 64GiB, tape 1TiB", "begins with none of dram"),
        ("dram 64GiB 100ns 90ns", "has two figures of latency"),
        ("dram 100ns", "has no size"),
        ("dram 64GiB 0ns", "has a latency of 0"),
        ("dram 64", "has `64`, which is no size"),
    ],
)
def test_a_line_that_is_none_says_where_and_how_to_write_it(line: str, problem: str) -> None:
    with pytest.raises(MachineError, match=re.escape(problem)) as raised:
        Machine.load(line)
    assert "hint: write for example `dram 512GiB" in str(raised.value)


def test_a_line_can_be_planned_on(tierloom: Tierloom, folder: Path) -> None:
    result = tierloom("plan", "mg-e", "--threads", "32", "--machine", LINE, "-o", str(folder / "p.toml"))
    assert result.exit_code == 0, result.output


def test_the_file_of_the_documentation_loads() -> None:
    (text,) = re.findall(r"^```toml\n(.*?)^```", (ROOT / "docs/machines.md").read_text(), re.MULTILINE | re.DOTALL)
    machine = Machine(text, "docs/machines.md")
    assert machine.curve("socket0", "cxl").peak_gb_s == pytest.approx(60.0, rel=0.01)


@pytest.mark.parametrize("name", ["liu-a", LINE])
def test_a_machine_is_written_as_a_file_that_is_it(tierloom: Tierloom, folder: Path, name: str) -> None:
    assert tierloom("machine", "export", name, "--toml", "-o", str(folder / "mine.toml")).exit_code == 0
    assert Machine.load(folder / "mine.toml").data == Machine.load(name).data


def test_a_file_is_made_of_a_line(folder: Path, tierloom: Tierloom) -> None:
    told = tierloom("machine", "new", "16 cores, dram 64GiB, cxl 1TiB 250ns 60GB/s", "--name", "planned", "--json")
    assert told.exit_code == 0
    made = Machine.load("planned.toml")
    assert (made.name, json.loads(told.stdout)["name"]) == ("planned", "planned")
    assert [memory["name"] for memory in made.data["memories"]] == ["dram", "cxl"]
    assert made.data["sockets"][0]["cores"]["value"] == 16
    again = tierloom("machine", "new", "dram 64GiB", "--name", "planned")
    assert (again.exit_code, "planned.toml: it is there already" in again.stderr) == (2, True)
    assert "no name of a machine" in tierloom("machine", "new", "dram 64GiB", "--name", "a/b").stderr
    assert tierloom("machine", "new", "dram 64GiB", "--name", "größe").exit_code == 0
    assert Machine.load("größe.toml").name == "größe"
    assert tierloom("machine", "show", "planned.toml", "--toml").stdout == (folder / "planned.toml").read_text()


def test_questions_make_the_line(folder: Path) -> None:
    answers = ["16", "DRAM", "64 GiB", "", "300GB/s", "tape", "1GiB", "", "", "cxl", "1TiB", "250", "60", ""]
    asked = ["machine", "new", "--name", "asked", "-o", "asked.toml"]
    told = click.testing.CliRunner().invoke(main, asked, input="\n".join(answers) + "\n", catch_exceptions=False)
    assert told.exit_code == 0, told.output
    assert "begins with none of dram" in told.stderr, "what cannot be meant is asked again"
    same = Machine.load("16 cores, dram 64GiB 300GB/s, cxl 1TiB 250ns 60GB/s")
    made = Machine.load("asked.toml")
    assert {**made.data, "name": "", "title": ""} == {**same.data, "name": "", "title": ""}
    assert (folder / "asked.toml").is_file()


def test_what_describes_no_machine_is_refused(tierloom: Tierloom) -> None:
    told = tierloom("machine", "new", "liu-a")
    assert told.exit_code == 2
    assert "`liu-a` describes no machine\nhint: write for example" in told.stderr
