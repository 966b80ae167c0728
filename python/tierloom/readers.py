"""The boundary of every reader: a file is read, or refused with one error that names it.

What a reader makes of content that it was not written for is some exception of its language: a key that is
missing, a table where a number should be, a header that is no Python. Each reader checks what it can name;
whatever else is wrong with the content ends here, as that reader's error.
"""

from __future__ import annotations

import struct
from contextlib import contextmanager
from tokenize import TokenError
from typing import TYPE_CHECKING

from tierloom.errors import RequestError, TierloomError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MALFORMED = (
    *(ValueError, TypeError, LookupError, ArithmeticError, AttributeError, EOFError),
    *(RecursionError, MemoryError, SyntaxError, TokenError, struct.error),
)
"""What content can make of code that takes it for something else; nothing else is a file's fault."""


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
