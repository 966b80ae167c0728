"""Shapes of code: one file each in `templates/c` and `templates/rust`, with the arrays that it needs.

A line `// role NAME TYPES FILL [BOUND] [as ROLE]` asks for an array. TYPES are element types to draw from, `num` for
all numbers, or `=ROLE` for the type of another. FILL says what it begins with: a macro of `runtime.h` or
`runtime.rs`; `below(ROLE)` are indices into another array. `as ROLE` asks for its length, `as4 ROLE` for four times
that.
"""

import re
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent / "templates"
NUMBERS = ("u8", "u16", "u32", "u64", "f32", "f64")
WIDTH = {"u8": 1, "u16": 2, "u32": 4, "u64": 8, "f32": 4, "f64": 8, "v4f": 16, "v4u": 32}
ROLE = re.compile(r"^// role (\w+) (\S+) (\w+)(?:\((\w+)\))?(?: (\d+))?(?: (as4?) (\w+))?$", re.MULTILINE)


@dataclass(frozen=True)
class Role:
    """An array that a shape works on."""

    name: str
    types: tuple[str, ...]
    same_type: str | None
    """The role whose type it has."""
    fill: str
    into: str | None
    """The role that its elements are indices of."""
    bound: int
    same_length: str | None
    """The role whose length it has, times `times`."""
    times: int

    @property
    def shareable(self) -> bool:
        """Whether another phase may use the same array: any content will do."""
        return self.fill in ("noise", "zero") and self.same_length is None


@dataclass(frozen=True)
class Shape:
    """A shape of code in one language."""

    name: str
    text: str
    roles: tuple[Role, ...]


def role(found: re.Match[str]) -> Role:
    """A line of a shape's head."""
    name, types, fill, into, bound, length, of = found.groups()
    same = types[1:] if types.startswith("=") else None
    drawn = NUMBERS if types == "num" else tuple(types.split(","))
    return Role(name, drawn, same, fill, into, int(bound or 1), of, 4 if length == "as4" else 1)


def shapes(language: str) -> list[Shape]:
    """All shapes of a language, by name."""
    paths = sorted((FOLDER / language).iterdir())
    texts = {path.stem: path.read_text(encoding="utf-8") for path in paths}
    return [Shape(name, ROLE.sub("", text), tuple(map(role, ROLE.finditer(text)))) for name, text in texts.items()]
