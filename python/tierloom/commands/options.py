"""Options that several verbs share, each said once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from tierloom import extras
from tierloom.commands.function_options import F, of
from tierloom.errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


FILE = click.Path(path_type=Path, dir_okay=False)
"""A file to read or to write."""

THROUGH = {"ignore_unknown_options": True, "allow_interspersed_args": False}
"""Context settings of verbs that run a program: what follows the program's name is the program's."""


PICTURES = {".png": "PNG picture", ".svg": "SVG picture", ".pdf": "PDF picture"}
"""By ending, the kind of file that is drawn."""


class Written(click.Path):
    """A file to write; refused before any work where a file of another kind is.

    Args:
        kind: Of `occupied.FILES`; without one it goes by the ending, and other endings are for others to refuse.
        folder: It is a folder for several files.
    """

    def __init__(self, kind: str | None = None, *, folder: bool = False) -> None:
        super().__init__(path_type=Path, dir_okay=folder, file_okay=not folder)
        self.kind = kind

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401
        """The path.

        Raises:
            RequestError: A file of another kind is there.
        """
        from tierloom.commands import occupied

        path: Any = super().convert(value, param, ctx)
        if kind := self.kind or PICTURES.get(path.suffix):
            occupied.refuse_others(path, kind, param.opts[0] if param else "-o")
        return path


class Drawn(Written):
    """A picture or a page to write; refused before any work where the packages that draw are missing."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401
        """The path.

        Raises:
            MissingPackageError: Nothing can be drawn here.
            RequestError: A file of another kind is there.
        """
        extras.require("report")
        return super().convert(value, param, ctx)


def output(about: str) -> Callable[[F], F]:
    """``-o FILE``: a file to write."""
    return click.option("-o", "--output", type=FILE, metavar="FILE", help=about)


def output_folder(about: str, *, or_file: bool = False) -> Callable[[F], F]:
    """``-o DIR``: a folder to write; where a file is there, that is for the verb to refuse, or for click."""
    kind = click.Path(path_type=Path, file_okay=or_file)
    return click.option("-o", "--output", type=kind, metavar="DIR", help=about)


def plot(what: str) -> Callable[[F], F]:
    """``--plot FILE``: a picture to draw."""
    return click.option("--plot", type=Drawn(), metavar="FILE", help=f"Draw {what}: .png, .svg or .pdf.")


def as_json(function: F) -> F:
    """``--json``: one document on stdout and nothing else."""
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout, nothing else.")(
        function
    )


PLAN = "policy_search:plan"
"""What declares the words that several verbs share."""

machine = of(PLAN, machine="--machine -m M")
"""``--machine``: catalog name or file."""

machine_or_none = of(PLAN, machine=("--machine -m M", {"required": False}))
"""The same, for a verb that does not always need one."""

socket = of(PLAN, socket="S")
"""``--socket``: where the program will run."""

memories = of(PLAN, nodes="A,B")
"""``--nodes``: the memories of the machine that the program will have."""

fast_memory = of(PLAN, fast_memory="SIZE")
"""``--fast-memory``: how much of the nearest memory the program will have."""

ran_on = of(PLAN, ran_on="M")
"""``--ran-on``: where a profile was recorded."""

threads = of(PLAN, threads=("--threads -t N", {"type": click.IntRange(min=1)}))
"""``--threads``: how wide the program will run."""

FOLDER = click.Path(path_type=Path, file_okay=False)

binaries = of("recordings:analyse", binaries=("DIR", {"type": FOLDER, "multiple": True}))
"""``--binaries``: folders with the files of code of a recording."""

nodes = of("plan_runner:run", nodes=("--node NAME=N", {"multiple": True}))
"""``--node NAME=N``: which nodes of this machine the plan's memories are."""


def refuse_idle(names: Sequence[str], why: str) -> None:
    """Refuses options of the running command that were typed and would do nothing.

    Args:
        names: Their parameters.
        why: Without or beside what, as the reader would type it.

    Raises:
        RequestError: One of them was typed.
    """
    ctx = click.get_current_context()
    for parameter in ctx.command.params:
        name = parameter.name or ""
        if name in names and ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            message = f"{parameter.opts[0]} does nothing {why}\nhint: leave it out; --help says what it belongs to"
            raise RequestError(message)


def program(function: F) -> F:
    """``-- CMD…``: the user's program."""
    return click.argument("command", nargs=-1, required=True, metavar="-- CMD…", type=click.UNPROCESSED)(function)


def node_numbers(texts: Sequence[str]) -> dict[str, int]:
    """Values of ``--node NAME=N``; whether there are such memories and nodes is seen when they are matched.

    Raises:
        RequestError: A value is not of that form.
    """
    numbers = {}
    for text in texts:
        name, _, number = text.partition("=")
        if not number.isdecimal():
            message = f"--node {text}: `{number}` is no node number\nhint: write --node {name}=1"
            raise RequestError(message)
        numbers[name] = int(number)
    return numbers


def examples(*lines: str) -> str:
    """The end of a verb's help: commands that run as they stand."""
    return "\b\nExamples:\n" + "\n".join(f"  $ {line}" for line in lines)
