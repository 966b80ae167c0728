"""The boundary of every reader: a file is read, or refused with one error that names it.

What a reader makes of content that it was not written for is some exception of its language: a key that is
missing, a table where a number should be, a header that is no Python. Each reader checks what it can name;
whatever else is wrong with the content ends here, as that reader's error. What is wrong in several places is told at
once: `Flaws` gathers it.
"""

from __future__ import annotations

import struct
from contextlib import contextmanager
from tokenize import TokenError
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from tierloom.errors import RequestError, TierloomError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

P = ParamSpec("P")
R = TypeVar("R")

MALFORMED = (
    *(ValueError, TypeError, LookupError, ArithmeticError, AttributeError, EOFError),
    *(RecursionError, MemoryError, SyntaxError, TokenError, struct.error),
)
"""What content can make of code that takes it for something else; nothing else is a file's fault."""


MOST_TOLD = 20
"""Flaws that a message tells, as many as those of files that the core reads; of more it says how many."""

HINT = "\nhint: "


def meant(name: str, known: Sequence[str]) -> str:
    """What to do about a name that is not known: the one that is nearly it, or all there are."""
    import difflib

    near = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    return f"did you mean {near[0]}?" if near else f"use one of: {', '.join(known)}"


class Flaws:
    """What is wrong with one file, gathered, so that its author learns all of it at once.

    Example:
        >>> flaws = Flaws()
        >>> flaws.add("seconds: -1 is no time", "write 1 or more")
        >>> flaws.add("colour: there is no such key", "use some of: seconds, memory")
        >>> flaws.refuse("runs.csv")
        Traceback (most recent call last):
        tierloom.errors.RequestError: runs.csv: 2 things are wrong
          seconds: -1 is no time (write 1 or more)
          colour: there is no such key (use some of: seconds, memory)
        hint: mend each of them
    """

    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []

    def add(self, problem: str, hint: str) -> None:
        """One more, unless it was told before: what and where, and what to do."""
        if (problem, hint) not in self.told:
            self.told.append((problem, hint))

    def of(self, read: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R | None:
        """What `read` reads; nothing where it refuses, which is one more flaw."""
        try:
            return read(*args, **kwargs)
        except RequestError as problem:
            what, _, hint = str(problem).partition(HINT)
            self.add(what, hint)
            return None

    def refuse(self, file: str = "", error: type[TierloomError] = RequestError) -> None:
        """Raises what was gathered.

        Raises:
            TierloomError: Of class `error`: something was.
        """
        if not self.told:
            return
        where = f"{file}: " if file else ""
        (problem, hint), *others = self.told
        if others:
            is_same = all(each == hint for _, each in others)
            lines = [what if is_same else f"{what} ({then})" for what, then in self.told[:MOST_TOLD]]
            more = len(self.told) - MOST_TOLD
            lines += [f"and {more} more"] * (more > 0)
            problem = "\n  ".join([f"{len(self.told)} things are wrong", *lines])
            hint = hint if is_same else "mend each of them"
        message = f"{where}{problem}{HINT}{hint}"
        raise error(message)


@contextmanager
def reading(file: Path | str, what: str, hint: str, error: type[TierloomError] = RequestError) -> Iterator[None]:
    """Errors of a block that reads a file become one that names it; errors of ours pass.

    Args:
        file: As errors should call it.
        what: What it should be: "GGUF file".
        hint: What to do.
        error: The reader's own.

    Raises:
        TierloomError: Of class `error`.

    Example:
        >>> with reading("a.json", "model", "give a config.json"):
        ...     {}["layers"]
        Traceback (most recent call last):
        tierloom.errors.RequestError: a.json: no model: there is no `layers`
        hint: give a config.json
    """
    try:
        yield
    except TierloomError:
        raise
    except OSError as problem:
        message = f"{file}: {problem.strerror or problem}\nhint: {hint}"
        raise error(message) from problem
    except UnicodeDecodeError as problem:
        message = f"{file}: no {what}: it holds bytes that are no text\nhint: {hint}"
        raise error(message) from problem
    except MALFORMED as problem:
        message = f"{file}: no {what}: {_told(problem)}\nhint: {hint}"
        raise error(message) from problem


def _told(problem: BaseException) -> str:
    """The first line of what Python says, and of what kind where that is not much."""
    words = str(problem).partition("\n")[0].strip()
    if isinstance(problem, KeyError):
        return f"there is no `{words.strip(chr(39))}`"
    if isinstance(problem, RecursionError):
        return "it is nested too deeply"
    if isinstance(problem, MemoryError):
        return "it says that it is larger than memory"
    return words or type(problem).__name__
