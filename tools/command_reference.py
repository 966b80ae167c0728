"""The reference of all commands: what each does, its options and examples, made of the same definitions as ``--help``.

usage: command_reference.py

Writes ``docs/commands.md``. A test holds it to the commands.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
from man_pages import commands

from tierloom.commands import SECTIONS

PAGE = Path(__file__).resolve().parents[1] / "docs" / "commands.md"

HEAD = """# Commands, option by option
What `tierloom VERB --help` says of every verb, on one page. It is made from the same definitions
(`tools/command_reference.py`). Examples run as they stand.

Data goes to stdout and words to stderr. `--json` prints one document instead of tables. The exit code is 0 when all is
done, 1 when the answer is no or the work failed, and 2 when the request is wrong.
"""

TYPED = re.compile(
    r"(\[(?:default|required|x|[\d.]+<)[^\]]*\]"
    r"|(?<![\w-])--?[\w-]*\w(?:=\w+)?|(?<!\S)--(?!\S)"
    r"|(?<!\w)[\w/*=]*[./_:]\w[\w/.:*,+=-]*\w)"
)
"""What is typed where a help text does not say so: defaults, options, files, names with signs in them."""

NEXT = "\nNext: [files, key by key](files.md), [what is stable](stability.md).\n"


def main() -> None:
    """Writes the page."""
    PAGE.write_text(written(), encoding="utf-8")


def written() -> str:
    """The page: verbs by purpose, those of a group behind it."""
    named = {str(context.info_name): context for _, context in commands()}
    parts = [HEAD]
    for purpose, verbs in SECTIONS.items():
        parts.append(f"\n## {purpose}\n")
        parts += [
            section(context)
            for verb in verbs
            for name, context in named.items()
            if f"{name} ".startswith(f"tierloom {verb} ")
        ]
    return "".join(parts) + NEXT


def section(context: click.Context) -> str:
    """A heading, how it is typed, what it does, a row an option, and examples."""
    command = context.command
    usage = " ".join([str(context.info_name), *command.collect_usage_pieces(context)])
    rows = [f"| {code(spelt)} | {cell(told)} |" for spelt, told in records(context)]
    table = "\n".join(["\n| option | meaning |\n|---|---|", *rows]) + "\n" if rows else ""
    examples = [line.strip() for line in (command.epilog or "").splitlines() if line.strip().startswith("$ ")]
    shown = block(examples) if examples else ""
    return f"\n### {context.info_name}\n{block([usage])}\n{prose(command.help or '')}\n{table}{shown}"


def records(context: click.Context) -> Iterator[tuple[str, str]]:
    """How each option is typed, and its help; arguments are in the text, and `--help` is everywhere."""
    for parameter in context.command.get_params(context):
        record = parameter.get_help_record(context)
        if record and isinstance(parameter, click.Option) and "--help" not in parameter.opts:
            yield record


def prose(text: str) -> str:
    r"""Paragraphs; one behind ``\b`` keeps its lines, as click has it."""
    parts = []
    for paragraph in re.split(r"\n\s*\n", text.strip()):
        if paragraph.lstrip().startswith("\b"):
            lines = paragraph.lstrip().removeprefix("\b").strip("\n").splitlines()
            least = min(len(line) - len(line.lstrip()) for line in lines)
            parts.append(block([line[least:] for line in lines]).strip("\n"))
        else:
            parts.append(cell(" ".join(paragraph.split())))
    return "\n\n".join(parts)


def block(lines: list[str]) -> str:
    """Lines as they are."""
    return "\n".join(["\n```text", *lines, "```\n"])


def code(text: str) -> str:
    """What is typed, as one cell."""
    return "`" + text.replace("|", "\\|") + "`"


def cell(text: str) -> str:
    """Words in one line: what is typed stands as that, and other signs are signs."""
    parts = re.split(r"(`[^`]*`)", re.sub(r"\s+", " ", text).replace("|", "\\|"))
    return "".join(part if part.startswith("`") else worded(part) for part in parts)


def worded(text: str) -> str:
    """A text without code, whose words that are typed become it."""
    parts = TYPED.split(text)
    return "".join(
        f"`{part}`" if odd % 2 else re.sub(r"([*<\[\]])", r"\\\1", part) for odd, part in enumerate(parts) if part
    )


if __name__ == "__main__":
    main()
