"""`tierloom machine`: every figure with its mark, every name that is not known answered."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from support import Tierloom
from syrupy.assertion import SnapshotAssertion

import tierloom as package


def test_list(tierloom: Tierloom, snapshot: SnapshotAssertion) -> None:
    result = tierloom("machine", "list")
    assert result.exit_code == 0
    assert result.stdout == snapshot


@pytest.mark.parametrize("name", package.Machine.names())
def test_show(tierloom: Tierloom, snapshot: SnapshotAssertion, name: str) -> None:
    result = tierloom("machine", "show", name)
    assert result.exit_code == 0
    assert result.stdout == snapshot


def test_help_promises_no_verb_that_is_not_there(tierloom: Tierloom) -> None:
    told = tierloom("machine", "--help").stdout
    promised, _, listed = told.partition("Commands:")
    assert "describe" not in promised
    assert all(word in listed for word in ("list", "show", "measure", "import", "new")), listed


def test_show_says_where_every_figure_comes_from(tierloom: Tierloom) -> None:
    output = tierloom("machine", "show", "liu-a", "--sources").stdout
    machine = package.Machine.load("liu-a").data
    for key in machine["sources"]:
        assert key in output
    figures = json.dumps(machine).count('"kind": ') - len(machine["memories"])
    rows = output[output.index("Figures") : output.index("Marks", output.index("Figures"))]
    assert sum(line.rstrip().count("  ") > 1 and ": " in line for line in rows.splitlines()) >= figures // 2


def test_json_is_one_document_and_nothing_else(tierloom: Tierloom) -> None:
    result = tierloom("machine", "show", "liu-a", "--json")
    assert json.loads(result.stdout)["name"] == "liu-a"
    assert result.stderr == ""
    assert {m["name"] for m in json.loads(tierloom("machine", "list", "--json").stdout)["machines"]} == set(
        package.Machine.names()
    )


def test_show_reads_a_file(tierloom: Tierloom, folder: Path) -> None:
    (folder / "mine.toml").write_text(package.Machine.load("liu-a").text.replace('"liu-a"', '"mine"'))
    result = tierloom("machine", "show", "mine.toml")
    assert result.exit_code == 0
    assert result.stdout.startswith("mine: ")


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_plot_is_drawn_the_same_way_twice(tierloom: Tierloom, folder: Path, ending: str) -> None:
    for name in ("one", "two"):
        assert tierloom("machine", "show", "liu-a", "--plot", f"{name}.{ending}").exit_code == 0
    assert (folder / f"one.{ending}").read_bytes() == (folder / f"two.{ending}").read_bytes()
    assert (folder / f"one.{ending}").stat().st_size > 5_000


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("machine", "show", "liu-d"), "did you mean liu-"),
        (("machine", "show", "no/such.toml"), "No such file"),
        (("machine", "show", "/etc"), "Is a directory"),
        (("machine", "show", "liu-a", "--plot", "curve.docx"), "let the name end with .png"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_wrong_requests_end_with_2_and_a_hint(tierloom: Tierloom, words: tuple[str, ...], told: str) -> None:
    result = tierloom(*words)
    assert result.exit_code == 2
    assert told in result.stderr
    assert "hint:" in result.stderr
    assert result.stdout == ""


BROKEN = {
    "not TOML": ("version = = 1", "line 1"),
    "no version": ('name = "x"', "version"),
    "newer": ("version = 2", "update tierloom"),
    "unknown key": ("version = 1\ncolour = 3", "colour"),
    "binary": ("\x00\x01", "mend the text"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_file_is_named_with_its_fault(tierloom: Tierloom, folder: Path, case: str) -> None:
    text, told = BROKEN[case]
    (folder / "broken.toml").write_text(text)
    result = tierloom("machine", "show", "broken.toml")
    assert result.exit_code == 2
    assert "broken.toml" in result.stderr
    assert told in result.stderr
    assert "hint:" in result.stderr


def test_a_figure_that_cannot_be_true_is_named_by_its_key(tierloom: Tierloom, folder: Path) -> None:
    text = package.Machine.load("liu-a").text
    (folder / "wrong.toml").write_text(text.replace("idle_ns = { value = 85.0", "idle_ns = { value = -85.0", 1))
    result = tierloom("machine", "show", "wrong.toml")
    assert result.exit_code == 2
    assert "wrong.toml: paths[0].idle_ns: -85 is not a number above 0" in result.stderr


def test_bytes_among_the_figures_are_written_as_everywhere(tierloom: Tierloom) -> None:
    told = tierloom("machine", "show", "liu-a", "--sources").stdout
    assert re.search(r"ldram: capacity_bytes +768GiB p", told)
    assert "e+" not in told
