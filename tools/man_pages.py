"""Manual pages of all verbs, made of the same definitions as ``--help``.

python tools/man_pages.py build/man/man1
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import click

from tierloom.commands import main

PROGRAM = "tierloom"


def commands(command: click.Command = main, path: tuple[str, ...] = (PROGRAM,)) -> Iterator[tuple[str, click.Context]]:
    """Every command with its name in the manual, groups before what is in them."""
    context = click.Context(command, info_name=" ".join(path))
    yield "-".join(path), context
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            if inner := command.get_command(context, name):
                yield from commands(inner, (*path, name))


def page(name: str, context: click.Context) -> str:
    """One page, as roff (man-pages(7)): name, synopsis, description, options, examples, see also."""
    command = context.command
    version = metadata.version(PROGRAM)
    parts = [
        f'.TH "{escaped(name.upper())}" 1 "" "Tierloom {version}" "Tierloom"',
        ".SH NAME",
        f"{escaped(name)} \\- {escaped(command.get_short_help_str(200).rstrip('.'))}",
        ".SH SYNOPSIS",
        f".B {escaped(str(context.info_name))}",
        escaped(" ".join(command.collect_usage_pieces(context))),
        ".SH DESCRIPTION",
        *prose(command.help or ""),
        *options(command, context),
        *verbs(name, command, context),
        *examples(command.epilog or ""),
        ".SH SEE ALSO",
        f".BR {PROGRAM} (1)",
    ]
    return "\n".join(parts) + "\n"


def prose(text: str) -> Iterator[str]:
    r"""Paragraphs; one behind ``\b`` keeps its lines, as click has it."""
    for index, paragraph in enumerate(re.split(r"\n\s*\n", text.strip())):
        if index:
            yield ".PP"
        if paragraph.lstrip().startswith("\b"):
            yield from (".nf", escaped(paragraph.lstrip().removeprefix("\b").strip("\n")), ".fi")
        else:
            yield escaped(" ".join(paragraph.split()))


def options(command: click.Command, context: click.Context) -> Iterator[str]:
    """Options with their help."""
    records = [parameter.get_help_record(context) for parameter in command.get_params(context)]
    yield ".SH OPTIONS"
    for spelt, told in (record for record in records if record):
        yield from (".TP", f".B {escaped(spelt)}", escaped(told or " "))


def verbs(name: str, command: click.Command, context: click.Context) -> Iterator[str]:
    """What is in a group, each with the name of its page."""
    if not isinstance(command, click.Group):
        return
    yield ".SH VERBS"
    for each in command.list_commands(context):
        if inner := command.get_command(context, each):
            yield from (".TP", f".BR {escaped(f'{name}-{each}')} (1)", escaped(inner.get_short_help_str(200)))


def examples(epilog: str) -> Iterator[str]:
    """The commands at the end of the help."""
    lines = [line.strip() for line in epilog.splitlines() if line.strip().startswith("$ ")]
    if lines:
        yield from (".SH EXAMPLES", ".nf", *(escaped(line) for line in lines), ".fi")


def escaped(text: str) -> str:
    """Text that roff takes for text: no escapes, no hyphens for minus signs, no line that is a request."""
    plain = text.replace("\\", "\\e").replace("-", "\\-")
    plain = re.sub(r"[^\x00-\x7f]", lambda found: f"\\[u{ord(found[0]):04X}]", plain)
    return "\n".join(f"\\&{line}" if line.startswith((".", "'")) else line for line in plain.splitlines())


def write(folder: Path) -> list[Path]:
    """Writes all pages into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, context in commands():
        paths.append(folder / f"{name}.1")
        paths[-1].write_text(page(name, context), encoding="utf-8")
    return paths


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    write(parser.parse_args().folder)
