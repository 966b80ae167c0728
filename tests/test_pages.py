"""The commands of every page run as they stand, in their order, and print what the page shows of them."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest
from pages import DOCUMENTS, blocks_of, reason_to_leave_out, typed, write_files

from tierloom.commands import main

PAGES = [page for page in DOCUMENTS if blocks_of(page, "console")]

LIVE = {
    "tierloom capacity measure duckdb": "times runs of DuckDB whose memory is short",
    "tierloom capacity measure redis": "waits for a server to answer, and times it",
    "tierloom machine measure": "measures this machine",
    "tierloom validate": "times programs on the machine that `machine measure` measured",
}
"""Commands that `make test` leaves to `make live`, by how they begin, each with its reason."""


def commands(page: Path) -> list[str]:
    """What a page has its readers type, in order."""
    return [line[2:] for text in blocks_of(page, "console") for line in text.splitlines() if line.startswith("$ ")]


def is_live(command: str) -> bool:
    return command.startswith(tuple(LIVE))


def stem(page: Path) -> str:
    return page.stem


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("page", [page for page in PAGES if not all(map(is_live, commands(page)))], ids=stem)
def test_what_a_page_has_one_type_runs(page: Path, executable: Path, folder: Path) -> None:
    write_files(page, folder)
    printed = {command: typed(command, executable) for command in commands(page) if not is_live(command)}
    for command, text in shown(page).items():
        assert text.split() == printed[command].split(), f"$ {command}"
    for command, text in printed.items():
        for policy in re.findall(r"\w+\.py:\w+", command if command.startswith("tierloom") else ""):
            assert re.search(rf"^ *{re.escape(policy)} .*\d m?s", text, re.MULTILINE), f"$ {command}"


def shown(page: Path) -> dict[str, str]:
    """The whole output of commands whose block is followed by one that shows it."""
    told = page.read_text(encoding="utf-8")
    return dict(re.findall(r"^```console\n\$ ([^\n]*)\n```\n\n?```text\n(.*?)^```", told, re.MULTILINE | re.DOTALL))


@pytest.mark.live
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("page", [page for page in PAGES if any(map(is_live, commands(page)))], ids=stem)
def test_a_page_that_measures_runs_whole(page: Path, executable: Path, folder: Path) -> None:
    write_files(page, folder)
    left_out = []
    for command in commands(page):
        if reason := reason_to_leave_out(command):
            left_out.append(f"`{command}`: {reason}")
        else:
            typed(command, executable)
    if left_out:
        pytest.skip(f"all but {'; '.join(left_out)}")


def test_nothing_is_left_to_the_live_ring_without_a_command() -> None:
    every = [command for page in PAGES for command in commands(page)]
    assert len(every) > 80
    assert [start for start in LIVE if not any(command.startswith(start) for command in every)] == []


SPAN = re.compile(r"`(tierloom [^`]+)`|^(?:\$ )?(tierloom .*)$", re.MULTILINE)
"""A command in a sentence, or in a line of its own."""


def test_commands_that_are_not_run_have_verbs_and_options_that_there_are() -> None:
    unknown = []
    for page in DOCUMENTS:
        for span in SPAN.findall(page.read_text(encoding="utf-8")):
            unknown += [f"{page.name}: {word}" for word in unknown_words("".join(span))]
    assert not unknown, "\n".join(unknown)


def unknown_words(command: str) -> list[str]:
    """Verbs and options of a command that Tierloom does not have; what follows `--` is another program's."""
    verb: click.Command = main
    words = command.split(" -- ")[0].split()[1:]
    while isinstance(verb, click.Group) and words and re.fullmatch("[a-z]+", words[0]):
        if (inner := verb.get_command(click.Context(verb), words[0])) is None:
            return [f"`{command}`: no verb `{words[0]}`"]
        verb, words = inner, words[1:]
    known = {name for each in verb.params for name in [*each.opts, *each.secondary_opts]} | {"--help"}
    return [f"`{command}`: no option `{word}`" for word in words if word.startswith("--") and word not in known]
