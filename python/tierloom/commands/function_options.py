"""Options that are arguments of a function of the API: its signature and docstring declare both.

One text has two readers. Who reads Python's help has all of an argument's entry. Who types ``--help`` has its first
paragraph: what the argument means, in words of neither. What only Python can hand over is in the annotation, or in a
paragraph below. Three rules turn the one into the other, so that no mark has to stand in the text:

- in double backticks the name of an argument of the same function becomes its option: ``fast_memory``;
- a text there loses its quotes, ``"64GiB"``, unless it has spaces, for which a shell wants them, too;
- anything else loses the backticks alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tierloom.commands.declared_arguments import arguments_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Spelt = str | tuple[str, Mapping[str, Any]]
    """Flags where they are not the argument's name, and what stands for its value; what click is told besides."""

F = TypeVar("F", bound="Callable[..., Any]")

MARKED = re.compile(r"``(.+?)``")

NUMBERS: dict[str, type] = {"int": int, "float": float}
"""What is made of a text, by annotation; the function reads everything else itself."""


def of(function: str, /, **spelt: Spelt) -> Callable[[F], F]:
    """Options for arguments of a function, in this order.

    Args:
        function: The function or data class, as ``"offload.inference:infer"``.
        spelt: By argument how it is typed, as in ``link_gb_s="--gpu-link GB/S"``.
    """
    said = {name: (how, {}) if isinstance(how, str) else how for name, how in spelt.items()}
    flags = {name: flags_of(name, said[name][0] if name in said else "") for name in arguments_of(function)}

    def decorate(verb: F) -> F:
        for name, (how, more) in reversed(said.items()):
            settings = {**told(function, name, flags), "metavar": metavar(how), **more}
            if settings.get("multiple"):
                settings |= {"default": None, "help": f"{settings['help']} May be given again."}
            verb = click.option(*flags[name], name, **settings)(verb)
        return verb

    return decorate


def flags_of(name: str, how: str) -> list[str]:
    """How an argument is typed: as it is said, else by its name."""
    return [word for word in how.split() if word.startswith("-")] or [f"--{name.replace('_', '-')}"]


def metavar(how: str) -> str | None:
    """What stands for an argument's value."""
    return " ".join(word for word in how.split() if not word.startswith("-")) or None


def told(function: str, name: str, flags: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """What click is told of an argument: type, help, and default, which is shown where it says something."""
    argument = arguments_of(function)[name]
    about, default = line_of(argument.about, flags), argument.default
    if argument.kinds == ["bool"]:
        return {"help": about, "is_flag": True, "default": default, "show_default": default is True}
    # Without a type click takes that of the default: 2048 for what may be a range, or a file.
    plain = str if "str" in argument.kinds else NUMBERS.get(argument.kinds[0])
    kind = click.Choice(argument.words) if argument.words else plain
    if argument.required:
        return {"help": about, "type": kind, "required": True}
    default = ",".join(default) if isinstance(default, tuple) else default
    shown = default not in (None, "") and default is not False
    return {"help": about, "type": kind, "default": default, "show_default": shown}


def line_of(about: str, flags: Mapping[str, Sequence[str]]) -> str:
    r"""The line of help in an argument's entry of a docstring.

    Example:
        >>> line_of('Such as ``"64GiB"``; not beside ``all_of_it``.\n\nBytes, too.', {"all_of_it": ["--all"]})
        'Such as 64GiB; not beside --all.'
    """
    first = " ".join(about.split("\n\n", maxsplit=1)[0].split())
    return MARKED.sub(lambda found: typed(found[1], flags), first)


def typed(marked: str, flags: Mapping[str, Sequence[str]]) -> str:
    """What stands in double backticks, as it is typed."""
    if marked in flags:
        return flags[marked][0]
    return marked if " " in marked else marked.strip('"')
