"""Options that are arguments of a function of the API: its signature and docstring declare both.

They are read from its source. Loading it would bring engines, which nobody waits for who asks for a help text.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

import tierloom

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    Spelt = str | tuple[str, Mapping[str, Any]]
    """Flags where they are not the argument's name, and what stands for its value; what click is told besides."""

F = TypeVar("F", bound="Callable[..., Any]")

SECTION = re.compile(r"^(?:Args|Attributes):\n(.*?)(?=^\S|\Z)", re.MULTILINE | re.DOTALL)
ENTRY = re.compile(r"^    (\w+): (.*?)(?=^    \w+: |\Z)", re.MULTILINE | re.DOTALL)

BESIDES = re.compile(r" (?:From Python|In full:).*")
"""What a docstring tells of an argument beside its line of help."""

OURS = f"{tierloom.__name__}."

NUMBERS: dict[str, type] = {"int": int, "float": float}
"""What is made of a text, by annotation; the function reads everything else itself."""


class Argument(NamedTuple):
    """What a function declares of an argument: its annotation and default as expressions, and what it means."""

    annotation: ast.expr
    default: ast.expr | None
    about: str | None


def of(function: str, /, **spelt: Spelt) -> Callable[[F], F]:
    """Options for arguments of a function, in this order.

    Args:
        function: The function or data class, as ``"offload.requests:infer"``.
        spelt: By argument how it is typed, as in ``link_gb_s="--gpu-link GB/S"``.
    """

    def decorate(verb: F) -> F:
        for name, said in reversed(spelt.items()):
            text, more = (said, {}) if isinstance(said, str) else said
            flags = [word for word in text.split() if word.startswith("-")] or [f"--{name.replace('_', '-')}"]
            metavar = " ".join(word for word in text.split() if not word.startswith("-")) or None
            verb = click.option(*flags, name, **{**told(function, name), "metavar": metavar, **more})(verb)
        return verb

    return decorate


def told(function: str, name: str) -> dict[str, Any]:
    """What click is told of an argument: type, help, and default, which is shown where it says something."""
    module, _, named = function.partition(":")
    argument = arguments_of(module, named)[name]
    kinds = [each for each in ast.unparse(argument.annotation).split(" | ") if each != "None"]
    if argument.default is None:
        return {"help": argument.about, "type": NUMBERS.get(kinds[0]), "required": True}
    default = value_of(module, argument.default)
    if kinds == ["bool"]:
        return {"help": argument.about, "is_flag": True, "default": default, "show_default": default is True}
    words = words_of(module, kinds[0])
    # Without a type click takes that of the default: 2048 for what may be a range, or a file.
    kind = click.Choice(words) if words else str if "str" in kinds else NUMBERS.get(kinds[0])
    default = ",".join(default) if isinstance(default, tuple) else default
    shown = default not in (None, "") and default is not False
    return {"help": argument.about, "type": kind, "default": default, "show_default": shown}


@cache
def source_of(module: str) -> ast.Module:
    """The source of a module of ours."""
    path = Path(tierloom.__file__).parent.joinpath(*module.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return ast.parse(file.read_text(encoding="utf-8"))


@cache
def arguments_of(module: str, named: str) -> dict[str, Argument]:
    """The arguments of a function, or the fields of a data class."""
    found: Any = source_of(module)
    for name in named.split("."):
        found = next(node for node in found.body if getattr(node, "name", None) == name)
    section = SECTION.search(inspect.cleandoc(ast.get_docstring(found) or ""))
    entries = dict(ENTRY.findall(section[1])) if section else {}
    about = {name: BESIDES.sub("", " ".join(text.split())).replace("``", "") for name, text in entries.items()}
    declared = fields(found) if isinstance(found, ast.ClassDef) else parameters(found.args)
    return {name: Argument(annotation, default, about.get(name)) for name, annotation, default in declared}


def parameters(given: ast.arguments) -> Iterator[tuple[str, Any, ast.expr | None]]:
    """Parameters of a function with annotations and defaults."""
    unset = len(given.args) - len(given.defaults)
    defaults = [*[None] * unset, *given.defaults, *given.kw_defaults]
    for each, default in zip([*given.args, *given.kwonlyargs], defaults, strict=True):
        yield each.arg, each.annotation, default


def fields(given: ast.ClassDef) -> Iterator[tuple[str, ast.expr, ast.expr | None]]:
    """Fields of a data class."""
    for node in given.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id, node.annotation, node.value


@cache
def names_of(module: str) -> dict[str, ast.expr | str]:
    """What a module assigns to names, and from which of our modules it imports others."""
    found: dict[str, ast.expr | str] = {}
    for node in [inner for each in source_of(module).body for inner in [each, *getattr(each, "body", [])]]:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            found[node.targets[0].id] = node.value
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith(OURS):
            found |= dict.fromkeys([each.name for each in node.names], str(node.module).removeprefix(OURS))
    return found


def assigned(module: str, name: str) -> ast.expr | None:
    """What a name of a module stands for, there or where it is imported from; none where no assignment tells."""
    found = names_of(module).get(name)
    return assigned(found, name) if isinstance(found, str) else found


def value_of(module: str, default: ast.expr) -> Any:  # noqa: ANN401 (whatever the function has)
    """The value of a default: a literal, or a constant by its name."""
    return ast.literal_eval((assigned(module, default.id) if isinstance(default, ast.Name) else None) or default)


def words_of(module: str, kind: str) -> list[str]:
    """The words that an argument may be, where its annotation is the name of a `Literal`."""
    found = assigned(module, kind)
    is_literal = isinstance(found, ast.Subscript) and ast.unparse(found.value) == "Literal"
    return [*ast.literal_eval(found.slice)] if isinstance(found, ast.Subscript) and is_literal else []
