"""What a random program is made of, before it is text."""

from dataclasses import dataclass

from .shapes import WIDTH, Shape


@dataclass(frozen=True)
class Array:
    """A data object of a program."""

    name: str
    type: str
    length: int
    place: str
    """`static`, or the function that allocates it."""
    fill: str
    bound: int
    shareable: bool

    @property
    def bytes(self) -> int:
        """How large it is."""
        return self.length * WIDTH[self.type]


@dataclass(frozen=True)
class Phase:
    """A shape at work on some arrays."""

    name: str
    shape: Shape
    arrays: dict[str, Array]
    words: dict[str, str]
    steps: int
    inlined: bool
    by_global: bool


@dataclass(frozen=True)
class Build:
    """How a program becomes machine code."""

    language: str
    flags: tuple[str, ...]


@dataclass(frozen=True)
class Plan:
    """A random program."""

    seed: int
    build: Build
    arrays: tuple[Array, ...]
    phases: tuple[Phase, ...]
    interleaved: bool
    """Whether the phases take turns in each round; else each has all its rounds in one go."""
    two_files: bool
    cpu_s: float
    """How long it should run."""
