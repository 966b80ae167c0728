"""The command after `next:`: it fits the answer, and it runs as it is printed."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click.testing
import pytest
from support import Run, Tierloom

import tierloom as package
from tierloom import catalog, extras
from tierloom.commands import main, next_command
from tierloom.report.pages.html_file import CHARTS

pytestmark = pytest.mark.smoke

SIMULATE = ("-m", "liu-a", "--nodes", "ldram,cxl", "--fast-memory", "50%", "--evaluator", "cohort")
STILL = ("simulate", "ft-d", *SIMULATE, "--policy", "none", "--threads", "8")
LLM = ("--model", "llama-3.1-8b", "--gpu", "a10", "-m", "liu-a")


def told(result: click.testing.Result | subprocess.CompletedProcess[str]) -> str | None:
    """The command after `next:`."""
    found: list[str] = re.findall(r"^next: (.*)$", result.stderr, re.MULTILINE)
    assert len(found) <= 1, "one command, not several"
    return found[0] if found else None


ASKED = {
    "diff": (("diff", "bt-e", "sp-e"), "tierloom diff bt-e sp-e --json | tierloom report -"),
    "nothing brings more": (
        STILL,
        "tierloom plan ft-d --machine liu-a --threads 8 --nodes ldram,cxl --fast-memory 50%",
    ),
    "a workload": (
        ("simulate", "-w", "zipf", "--size", "64MiB", "--seconds", "1", *SIMULATE, "--policy", "none,tiering"),
        "tierloom simulate -w zipf --size 64MiB --seconds 1 -m liu-a --nodes ldram,cxl --fast-memory 50% --evaluator "
        "cohort --policy none,tiering --json | tierloom report -",
    ),
    "offload list": (("offload", "list"), "tierloom offload infer --model llama-3.1-70b --gpu a10 --machine liu-a"),
    "offload infer": (
        ("offload", "infer", *LLM, "--users", "4"),
        "tierloom offload infer --model llama-3.1-8b --gpu a10 -m liu-a --users 4 --emit vllm",
    ),
    "offload train": (
        ("offload", "train", "--model", "gpt2-4b", "--gpu", "a10", "-m", "liu-a", "--batch", "4"),
        "tierloom offload train --model gpt2-4b --gpu a10 -m liu-a --batch 4 --emit deepspeed",
    ),
    "offload serve": (
        ("offload", "serve", *LLM, "--sessions", "8", "--context", "4096"),
        f"tierloom offload serve {' '.join(LLM)} --sessions 8 --context 4096 --json | tierloom report -",
    ),
    "offload cpu": (
        ("offload", "cpu", "--model", "llama-7b", "-m", "liu-a", "-t", "16"),
        "tierloom offload cpu --model llama-7b -m liu-a -t 16 --json | tierloom report -",
    ),
}
"""What was asked, and what comes next."""


@pytest.mark.parametrize("case", ASKED)
def test_the_next_command_is_of_the_answer_and_runs(case: str, run: Run, executable: Path, folder: Path) -> None:
    asked, following = ASKED[case]
    assert told(run(*asked)) == following
    if "report" in following and catalog.native_file(CHARTS) is None:
        pytest.skip("the charts' scripts are not there: make install")
    typed = re.sub(r"\btierloom\b(?= )", shlex.quote(str(executable)), following)
    pasted = subprocess.run(
        ["bash", "-o", "pipefail", "-c", typed], cwd=folder, capture_output=True, text=True, check=False
    )
    assert pasted.returncode == 0, pasted.stderr


@pytest.mark.parametrize("case", ASKED)
@pytest.mark.usefixtures("folder")
def test_a_document_has_no_next_command(case: str, tierloom: Tierloom) -> None:
    assert told(tierloom(*ASKED[case][0], "--json")) is None


def test_what_is_as_it_was_has_no_page(tierloom: Tierloom) -> None:
    assert told(tierloom("diff", "bt-e", "bt-e")) is None


def test_no_page_is_named_where_nothing_draws_one(tierloom: Tierloom, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "missing", lambda extra: ["jinja2"] if extra == "report" else [])
    assert told(tierloom("diff", "bt-e", "sp-e")) is None


def test_options_are_added_before_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    def verb(**_: object) -> None:
        seen.append(next_command.again("--runs", "9"))

    for words in (["validate", "--runs", "3", "--", "a b", "--runs"], ["validate", "true"]):
        command = main.get_command(click.Context(main), "validate")
        assert command is not None
        monkeypatch.setattr(command, "callback", verb)
        click.testing.CliRunner().invoke(main, words, catch_exceptions=False)
    assert seen == ["tierloom validate --runs 3 --runs 9 -- 'a b' --runs", "tierloom validate --runs 9 true"]


def row(**of: Any) -> Any:
    return {"command": ["./a b", "-x"], "error": 0.3, "others": 0.0, "repeat": 0.01, **of}


@pytest.mark.parametrize(
    ("rows", "counts", "following"),
    [
        ([], True, None),
        ([row(error=0.08)], True, "tierloom profile -- './a b' -x"),
        ([row(error=0.02, command=["other"]), row()], True, "tierloom profile --count traffic -- './a b' -x"),
        ([row()], False, "tierloom profile -- './a b' -x"),
        ([row(others=0.2)], True, "tierloom validate"),
        ([row(repeat=0.4)], True, "tierloom validate --runs 9"),
        ([row(repeat=None, error=-0.4)], True, "tierloom profile --count traffic -- './a b' -x"),
    ],
    ids=["none", "good", "off", "no counter", "disturbed", "runs differ", "one run"],
)
def test_a_prediction_that_is_off_is_looked_into(
    rows: list[Any], following: str | None, monkeypatch: pytest.MonkeyPatch, *, counts: bool
) -> None:
    monkeypatch.setattr(next_command.shutil, "which", lambda _: "/usr/bin/valgrind" if counts else None)
    monkeypatch.setattr(next_command, "again", lambda *added: " ".join(["tierloom validate", *added]))
    found: Any = {"rows": rows, "runs": 3}
    assert next_command.validate(found, disturbed=0.05) == following


PLAN = (
    'version = 1\nmachine = "here"\nprofile = "it"\npolicy = "{}"\nnodes = ["dram"]\ndefault = "first_touch"\n'
    "[predicted]\ntime_s = 1.0\nlow_s = 1.0\nhigh_s = 1.0\nthreads = 1\nbytes = [0]\n"
)
HERE = package.Machine.of("dram 64GiB 100ns 100GB/s")


@pytest.mark.parametrize(
    ("policy", "at", "code", "following"),
    [
        ("bind:dram", {}, 3, None),
        ("bind:dram", {"is_of_another": True}, 0, "tierloom profile -- ./a 'b c'"),
        ("bind:dram", {"is_here": False}, 0, "tierloom report it.plan.toml"),
        ("bind:dram", {"here": None}, 0, "tierloom machine measure"),
        ("bind:dram", {}, 0, "tierloom validate --placements bind:dram --node dram=0 -- ./a 'b c'"),
        ("tierloom", {}, 0, "tierloom validate -- ./a 'b c'"),
    ],
    ids=["failed", "another program", "elsewhere", "not measured", "here", "searched"],
)
def test_a_run_is_held_against_runs_without_the_plan(
    policy: str, at: dict[str, Any], code: int, following: str | None
) -> None:
    place = next_command.Place(**{"is_of_another": False, "is_here": True, "here": HERE, "nodes": ["dram=0"], **at})
    report: Any = {
        "exit_code": code,
        "memories": [{"memory": "dram", "node": 0, "kind": "dram", "because": "as given"}],
    }
    plan = package.Plan(PLAN.format(policy))
    assert next_command.run(plan, "it.plan.toml", report, ["./a", "b c"], place) == following


def test_a_run_ends_with_what_to_do_next(run: Run, folder: Path) -> None:
    select = "size_bytes = 1\nselect = { size_at_least = 8000000000 }"
    rule = f'[[rules]]\nobject = "u"\n{select}\nplace = {{ prefer = "dram" }}\n'
    (folder / "it.plan.toml").write_text(PLAN.format("by hand") + rule)
    done = run("run", "--plan", "it.plan.toml", "--node", "dram=0", "--", "sh", "-c", "exit 0")
    assert done.stderr.splitlines()[-1].startswith("next: tierloom profile -- sh -c 'exit 0'")
    assert told(run("run", "--plan", "it.plan.toml", "--node", "dram=0", "--json", "--", "true")) is None


def test_what_could_not_be_moved_is_moved_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(next_command, "again", lambda: "tierloom apply --pid 7 --plan p.toml")
    for problems, following in (([], "tierloom report p.toml"), (["busy"], "tierloom apply --pid 7 --plan p.toml")):
        done: Any = {"rules": [{"problems": []}, {"problems": problems}]}
        assert next_command.apply(done, "p.toml") == following


def test_a_page_is_opened_where_there_is_a_display(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(next_command, "shutil", SimpleNamespace(which=lambda name: f"/usr/bin/{name}"))
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    assert next_command.report(Path("pages/a page.html")) == (
        "python3 -m http.server --bind localhost --directory pages"
    )
    monkeypatch.setenv("DISPLAY", ":0")
    assert next_command.report(Path("a page.html")) == "xdg-open 'a page.html'"
