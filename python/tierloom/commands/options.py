"""Options that several verbs share, each said once."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from tierloom import extras
from tierloom.errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

F = TypeVar("F", bound="Callable[..., Any]")

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


def as_json(function: F) -> F:
    """``--json``: one document on stdout and nothing else."""
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout, nothing else.")(
        function
    )


def machine(function: F) -> F:
    """``--machine``: catalog name or file."""
    return _machine(required=True)(function)


def machine_or_none(function: F) -> F:
    """The same, for a verb that does not always need one."""
    return _machine(required=False)(function)


def _machine(*, required: bool) -> Callable[[F], F]:
    return click.option(
        "--machine",
        "-m",
        required=required,
        metavar="M",
        help="Machine: a name of `tierloom machine list`, a file, or a line as `dram 512GiB, cxl 1TiB 250ns 60GB/s`.",
    )


def socket(function: F) -> F:
    """``--socket``: where the program will run."""
    return click.option("--socket", metavar="S", help="Socket where the threads run; the machine's first by default.")(
        function
    )


def memories(function: F) -> F:
    """``--nodes``: the memories of the machine that the program will have."""
    return click.option(
        "--nodes", metavar="A,B", help="Memories that may be used, separated by commas; all by default."
    )(function)


def fast_memory(function: F) -> F:
    """``--fast-memory``: how much of the nearest memory the program will have."""
    return click.option(
        "--fast-memory",
        metavar="SIZE",
        help="Fast memory, the nearest, that may be used: 64GiB, or 50% of the program's data.",
    )(function)


def of(function: Callable[..., Any], name: str, **said: Any) -> Callable[[F], F]:  # noqa: ANN401 (as click takes it)
    """An option for an argument of a function of the API, with that function's default."""
    default = inspect.signature(function).parameters[name].default
    return click.option(f"--{name.replace('_', '-')}", default=default, show_default=True, **said)


def ran_on(function: F) -> F:
    """``--ran-on``: where a profile was recorded."""
    return click.option(
        "--ran-on",
        metavar="M",
        help="Machine that PROFILE was recorded on, measured: predictions are anchored to that run. Known by itself "
        "where `tierloom machine measure` ran there.",
    )(function)


def binaries(function: F) -> F:
    """``--binaries``: folders with the files of code of a recording."""
    return click.option(
        "--binaries",
        type=click.Path(path_type=Path, file_okay=False),
        multiple=True,
        metavar="DIR",
        help="Folder with the program and libraries that ran: by build id (.build-id/xx/yyyy), by whole path, or by "
        "name. May be given again; what is in none is looked for where it ran.",
    )(function)


def threads(function: F) -> F:
    """``--threads``: how wide the program will run."""
    return click.option(
        "--threads",
        "-t",
        type=click.IntRange(min=1),
        metavar="N",
        help="Threads to plan for; the profile's by default.",
    )(function)


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


def nodes(function: F) -> F:
    """``--node NAME=N``: which nodes of this machine the plan's memories are."""
    return click.option(
        "--node",
        "nodes",
        multiple=True,
        metavar="NAME=N",
        help="Which node of this machine a memory of the plan is; by default found by what both are, and refused where "
        "that leaves a choice.",
    )(function)


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
