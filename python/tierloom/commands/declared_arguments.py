"""The arguments of functions of the API as their source declares them: type, default, and what the docstring says.

Loading a function would bring engines, which nobody waits for who asks for a help text; so its source is read.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import tierloom

if TYPE_CHECKING:
    from collections.abc import Iterator

SECTION = re.compile(r"^(?:Args|Attributes):\n(.*?)(?=^\S|\Z)", re.MULTILINE | re.DOTALL)
ENTRY = re.compile(r"^    (\w+): (.*?)(?=^    \w+: |\Z)", re.MULTILINE | re.DOTALL)

OURS = f"{tierloom.__name__}."


class Argument(NamedTuple):
    """An argument of a function, or a field of a data class.

    Attributes:
        module: Where it is declared.
        annotation: Its type.
        value: Its default; None where it has none.
        about: Its entry in the docstring.
    """

    module: str
    annotation: ast.expr
    value: ast.expr | None
    about: str

    @property
    def kinds(self) -> list[str]:
        """The types that it may have, without None."""
        return [kind for kind in map(ast.unparse, alternatives(self.annotation)) if kind != "None"]

    @property
    def words(self) -> tuple[str, ...]:
        """What it may be, where its type is a `Literal`."""
        first = meant(self.module, alternatives(self.annotation)[0])
        is_literal = isinstance(first, ast.Subscript) and ast.unparse(first.value) == "Literal"
        return ast.literal_eval(first.slice) if isinstance(first, ast.Subscript) and is_literal else ()

    @property
    def required(self) -> bool:
        """It has no default."""
        return self.value is None

    @property
    def default(self) -> Any:  # noqa: ANN401 (whatever the function has)
        """Its default, with constants of other modules followed."""
        return None if self.value is None else ast.literal_eval(meant(self.module, self.value))


@cache
def arguments_of(function: str) -> dict[str, Argument]:
    """The arguments of a function or a data class.

    Example:
        >>> arguments_of("capacity.cost:Rates")["server_cost"].default
        1.0
    """
    module, _, named = function.partition(":")
    found: Any = source_of(module)
    for name in named.split("."):
        found = next(node for node in found.body if getattr(node, "name", None) == name)
    section = SECTION.search(ast.get_docstring(found) or "")
    about = dict(ENTRY.findall(section[1])) if section else {}
    declared = fields(found) if isinstance(found, ast.ClassDef) else parameters(found.args)
    return {name: Argument(module, kind, value, about.get(name, "")) for name, kind, value in declared if kind}


@cache
def source_of(module: str) -> ast.Module:
    """The source of a module of ours."""
    path = Path(tierloom.__file__).parent.joinpath(*module.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return ast.parse(file.read_text(encoding="utf-8"))


def parameters(given: ast.arguments) -> Iterator[tuple[str, ast.expr | None, ast.expr | None]]:
    """Parameters of a function with annotations and defaults."""
    unset = len(given.args) - len(given.defaults)
    defaults = [*[None] * unset, *given.defaults, *given.kw_defaults]
    for each, default in zip([*given.args, *given.kwonlyargs], defaults, strict=True):
        yield each.arg, each.annotation, default


def fields(given: ast.ClassDef) -> Iterator[tuple[str, ast.expr | None, ast.expr | None]]:
    """Fields of a data class."""
    for node in given.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id, node.annotation, node.value


def alternatives(annotation: ast.expr) -> list[ast.expr]:
    """The types of ``A | B``."""
    if isinstance(annotation, ast.BinOp):
        return [*alternatives(annotation.left), *alternatives(annotation.right)]
    return [annotation]


def meant(module: str, expression: ast.expr) -> ast.expr:
    """An expression; of a name what is assigned to it there, or in the module of ours that it is imported from."""
    found = names_of(module).get(expression.id) if isinstance(expression, ast.Name) else None
    return meant(found, expression) if isinstance(found, str) else found or expression


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
