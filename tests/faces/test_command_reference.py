"""The page of all commands says what `--help` says."""

from __future__ import annotations

import re

import click
import command_reference
from man_pages import commands


def test_the_page_is_made_from_the_commands() -> None:
    kept = command_reference.PAGE.read_text(encoding="utf-8")
    assert kept == command_reference.written(), "python tools/command_reference.py"


def test_every_command_has_a_heading_and_every_option_a_row() -> None:
    page = command_reference.written()
    parts = dict(re.findall(r"^### (tierloom .*?)\n(.*?)(?=^##|^Next:)", page, re.MULTILINE | re.DOTALL))
    every = {str(context.info_name): context for _, context in commands()}
    assert parts.keys() == every.keys() - {"tierloom"}
    for name, told in parts.items():
        flags = {flag for each in every[name].command.params if isinstance(each, click.Option) for flag in each.opts}
        rows = [row.split(" | ")[0] for row in told.splitlines() if row.startswith("| `")]
        assert {flag for row in rows for flag in re.findall(r"(?<![\w-])--?[\w-]+", row)} >= flags, name
        examples = re.findall(r"^ *(\$ .*)$", every[name].command.epilog or "", re.MULTILINE)
        assert told.rstrip().endswith("\n".join(["```text", *examples, "```"]))


def test_signs_of_a_text_stay_signs() -> None:
    assert command_reference.cell("a|b <c> *d [e] `--f [g|h]`") == "a\\|b \\<c> \\*d \\[e\\] `--f [g\\|h]`"
    assert (
        command_reference.prose("One\ntwo.\n\n\b\n  $ three\n    four") == "One two.\n\n```text\n$ three\n  four\n```"
    )


def test_what_is_typed_is_shown_as_that() -> None:
    told = "Write FILE.py:CLASS, .png or a/b.c with --no-x, as in n=cxl:2GiB.  [default: 3; x>=1]"
    shown = "Write `FILE.py:CLASS`, `.png` or `a/b.c` with `--no-x`, as in `n=cxl:2GiB`. `[default: 3; x>=1]`"
    assert command_reference.cell(told) == shown
    plain = "First-touch, and a well-known word: this. That"
    assert command_reference.cell(plain) == plain
