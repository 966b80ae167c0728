"""Every Python block of the documents runs as it stands, and so do the examples of help pages and docstrings."""

from __future__ import annotations

import ast
import doctest
import importlib
import importlib.util
import pkgutil
import re
import subprocess
import time
from pathlib import Path

import click
import pytest
from pages import DOCUMENTS, NUMBERS, blocks, is_file, reason_to_leave_out, started

import tierloom
from tierloom.commands import SECTIONS, main


@pytest.mark.parametrize(("document", "text"), [(page, text) for page, text in blocks("python") if not is_file(text)])
@pytest.mark.usefixtures("folder")
def test_python_blocks_run(document: str, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(ast.parse(text), document, "exec"), {})  # noqa: S102 (that is the test)
    printed = capsys.readouterr().out.splitlines()
    prints = [line for line in text.splitlines() if line.lstrip().startswith("print(")]
    assert len(printed) >= len(prints) > 0, f"{document}: a block prints what it is there to show"
    empty = {"", "None", "nan", "inf", "[]", "{}"}
    assert not [line for line in printed if line.strip() in empty or re.search(r"\b(nan|inf)\b", line)]


def verbs(command: click.Command = main, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Every verb with its group, in the order of the help text: profile before plan before run."""
    if not isinstance(command, click.Group):
        return [path]
    context = click.Context(command)
    inner = [(name, command.get_command(context, name)) for name in command.list_commands(context)]
    return [verb for name, found in inner if found for verb in verbs(found, (*path, name))]


def examples_of(verb: tuple[str, ...], executable: Path) -> list[str]:
    """Commands at the end of a verb's help."""
    told = subprocess.run([executable, *verb, "--help"], capture_output=True, text=True, check=True).stdout
    return [line.strip()[2:] for line in told[told.index("Examples:") :].splitlines() if "$ " in line]


def run_examples(wanted: list[tuple[str, ...]], executable: Path, folder: Path) -> None:
    (folder / "numbers.txt").write_text(NUMBERS)
    left_out = []
    for verb in filter(can_run, wanted):
        for example in examples_of(verb, executable):
            if reason := reason_to_leave_out(example):
                left_out.append(f"`{example}`: {reason}")
            elif example not in MEASURED_BY_ANOTHER:
                prepare(verb, executable, folder)
                started(example, executable)
    if left_out:
        pytest.skip(f"all but {'; '.join(left_out)}")


def judges_the_machine(verb: tuple[str, ...]) -> bool:
    """Whether examples of a verb may fail where a machine is too busy: they measure it, or wait for other processes."""
    return verb[-1] == "measure" or verb[:2] == ("capacity", "measure") or verb[0] in {"apply", "sweep", "validate"}


ELSEWHERE = {"demo", "lab"}
"""Verbs whose examples run for longer, and in tests of their own."""


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("section", SECTIONS)
def test_every_help_ends_with_two_examples_that_run(section: str, executable: Path, folder: Path) -> None:
    those = [verb for verb in verbs() if verb[0] in SECTIONS[section]]
    assert {verb: len(examples_of(verb, executable)) for verb in those} == dict.fromkeys(those, 2)
    run_examples([v for v in those if v[0] not in ELSEWHERE and not judges_the_machine(v)], executable, folder)


@pytest.mark.live
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_examples_that_judge_the_machine_run(executable: Path, folder: Path) -> None:
    first = [("profile",), ("plan",), ("run",)]  # `apply` takes what they write
    run_examples([*first, *filter(judges_the_machine, verbs())], executable, folder)


# The second example of the same help measures the same for a minute, and writes and prints more.
MEASURED_BY_ANOTHER = {"tierloom machine measure --quick"}


def can_run(verb: tuple[str, ...]) -> bool:
    """Spark is half a gigabyte, so it is not among the packages that tests install."""
    return verb[-1] != "spark" or importlib.util.find_spec("pyspark") is not None


def prepare(verb: tuple[str, ...], executable: Path, folder: Path) -> None:
    """`run` reads the plan that `plan` would have written for the profile that `profile` wrote."""
    if verb == ("run",) and not (folder / "sort.plan.toml").exists():
        started("tierloom plan sort.profile --machine liu-a", executable)
    if verb == ("trace", "import"):
        (folder / "lackey.txt").write_text("I  04001000,3\n L 1ffe0010,8\n S 1ffe0018,8\n M 1ffe0020,4\n")
    if verb[0] == "pmem" and not (folder / "state.pool").exists():
        started("tierloom pmem create state.pool 1MiB", executable)
    if verb == ("validate",):
        (folder / "here.toml").write_text(tierloom.Machine.of("dram 64GiB 100ns 100GB/s").text)
    if verb == ("apply",):
        start("sh -c 'echo $$ > app.pid; exec sleep 30'", executable, folder)


def start(program: str, executable: Path, folder: Path) -> None:
    """A program that runs under a plan while the example of `apply` does, and writes its process id."""
    if not (folder / "app.pid").exists():
        command = f"{executable} run --plan sort.plan.toml -- {program} > /dev/null 2>&1 &"
        subprocess.run(["bash", "-c", command], cwd=folder, check=True)
    for _ in range(200):
        if (folder / "app.pid").exists():
            return
        time.sleep(0.05)


def test_docstring_examples_hold() -> None:
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    names = [m.name for m in pkgutil.walk_packages(tierloom.__path__, "tierloom.") if "_core" not in m.name]
    tried = [doctest.testmod(importlib.import_module(name), optionflags=flags) for name in ["tierloom", *names]]
    assert sum(result.attempted for result in tried) >= 10
    assert sum(result.failed for result in tried) == 0


def test_links_between_documents_lead_somewhere() -> None:
    for path in DOCUMENTS:
        for target in re.findall(r"\]\((?!https?://|#)([^)#]+)", path.read_text(encoding="utf-8")):
            assert (path.parent / target).exists(), f"{path.name} points to {target}"
