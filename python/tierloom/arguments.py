"""What is handed to the functions of the API, read once: the same word means the same thing in all of them.

A function says ``@reads()`` and finds its arguments as its annotations promise: a whole number where NumPy's was
given, a list of names where they stood in one text, as on the command line. What cannot be meant is refused by the
argument's name. Arguments that are left at their defaults are not looked at.
"""

from __future__ import annotations

import functools
import inspect
import math
import numbers
import operator
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, ParamSpec, TypeVar, get_args, get_origin

from tierloom.errors import RequestError

Reader = Callable[[str, Any], Any]
"""From an argument's name and value to what is meant by it."""

P = ParamSpec("P")
R = TypeVar("R")

MOST_THREADS = 2**32 - 1
MOST_SEED = 2**64 - 1
LONGEST_NAME, LONGEST_PATH = 255, 4095
"""NAME_MAX and PATH_MAX of Linux, bytes."""


def reads(**special: Reader) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A function whose arguments are read by `READERS` before it is called.

    Args:
        special: Readers of arguments that mean something of their own in this function.

    Example:
        >>> import numpy
        >>> @reads()
        ... def wide(nodes: list[str], threads: int | None = None):
        ...     return nodes, threads
        >>> wide("ldram, cxl", threads=numpy.int64(8))
        (['ldram', 'cxl'], 8)
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        signature = inspect.signature(function)
        readers = {name: {**READERS, **special}.get(name) for name in signature.parameters}
        for name, each in signature.parameters.items():
            if words := words_of(function, each):
                readers[name] = or_none(one_of(words)) if each.default is None else one_of(words)
        defaults = {name: each.default for name, each in signature.parameters.items()}

        @functools.wraps(function)
        def called(*args: P.args, **kwargs: P.kwargs) -> R:
            bound = signature.bind(*args, **kwargs)
            for name, value in bound.arguments.items():
                reader = readers[name]
                if reader is not None and value is not defaults[name]:
                    bound.arguments[name] = reader(name, value)
            return function(*bound.args, **bound.kwargs)

        return called

    return decorate


def whole(least: int = 0, most: int = 2**53) -> Reader:
    """A whole number, NumPy's too, and 8.0 as 8.

    Example:
        >>> whole(1)("threads", 8.0)
        8
    """

    def read(name: str, value: Any) -> int:  # noqa: ANN401 (whatever was handed in)
        number = _index(value)
        if number is None or not least <= number <= most:
            size = f"from {least} to {most}" if most < 2**53 else f"of {least} or more"
            raise refused(value, name, "no such number", f"give a whole number {size}")
        return number

    return read


def real(least: float = 0.0, most: float = math.inf) -> Reader:
    """A number that is finite.

    Example:
        >>> real(least=1.0)("mlp", 4)
        4.0
    """

    def read(name: str, value: Any) -> float:  # noqa: ANN401 (whatever was handed in)
        good = isinstance(value, numbers.Real) and not _is_truth(value)
        number = float(value) if good else math.nan
        if not math.isfinite(number) or not least <= number <= most:
            size = f"of {least:g} or more" if most == math.inf else f"from {least:g} to {most:g}"
            raise refused(value, name, "no such number", f"give a number {size}")
        return number

    return read


def text(name: str, value: Any) -> str:  # noqa: ANN401 (whatever was handed in)
    """A text that can be written down."""
    if not isinstance(value, str) or not _is_unicode(value):
        raise refused(value, name, "no text", "give a text, such as a name")
    return str(value)


def one_of(known: Sequence[str]) -> Reader:
    """One of some words.

    Example:
        >>> one_of(["dram", "cxl"])("memory", "cxl")
        'cxl'
    """

    def read(name: str, value: Any) -> str:  # noqa: ANN401 (whatever was handed in)
        if not isinstance(value, str) or value not in known:
            raise refused(value, name, f"no {name}", f"use one of: {', '.join(known)}")
        return str(value)

    return read


def words_of(function: Callable[..., Any], parameter: inspect.Parameter) -> tuple[str, ...]:
    """The words that an argument may be, where its annotation is the name of a `Literal`."""
    named = vars(sys.modules[function.__module__]).get(str(parameter.annotation).removesuffix(" | None"))
    return get_args(named) if get_origin(named) is Literal else ()


def truth(name: str, value: Any) -> bool:  # noqa: ANN401 (whatever was handed in)
    """A truth, NumPy's too: no number stands for one."""
    if not _is_truth(value):
        raise refused(value, name, "no truth", "give True or False")
    return bool(value)


def names(name: str, value: Any) -> list[str]:  # noqa: ANN401 (whatever was handed in)
    """Names as a list, or in one text as on the command line.

    Example:
        >>> names("nodes", "ldram, cxl"), names("nodes", ("ldram", "cxl"))
        (['ldram', 'cxl'], ['ldram', 'cxl'])
    """
    if isinstance(value, str):
        return [each.strip() for each in text(name, value).split(",") if each.strip()]
    if isinstance(value, bytes) or not isinstance(value, Iterable):
        raise refused(value, name, "no list of names", "give names, such as ['ldram', 'cxl'] or 'ldram,cxl'")
    return [text(name, each) for each in value]


def policy(name: str, value: Any) -> Any:  # noqa: ANN401 (whatever was handed in)
    """The name of a policy, or a policy of one's own: a function or a class."""
    if callable(value) or isinstance(value, str):
        return value if callable(value) else text(name, value)
    raise refused(value, name, "no policy", "give a name, or a function or class of your own (no object of one)")


def policies(name: str, value: Any) -> list[Any]:  # noqa: ANN401 (whatever was handed in)
    """Policies as :func:`policy` reads each; one of one's own may stand alone.

    Example:
        >>> policies("policies", "usual, mine.py:hottest")
        ['usual', 'mine.py:hottest']
    """
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        return [value] if callable(value) else names(name, value)
    return [policy(name, each) for each in value]


def name_list(listed: Iterable[str] | None) -> list[str] | None:
    """Names as the command line and studies take them; none where nothing was listed.

    Example:
        >>> name_list("ldram, cxl"), name_list(None)
        (['ldram', 'cxl'], None)
    """
    return None if listed is None else names("names", listed)


def path(name: str, value: Any, error: type[RequestError] = RequestError) -> str:  # noqa: ANN401 (as above)
    """A name or a path, as text.

    Raises:
        RequestError: Of class `error`: no file can be called so.
    """
    try:
        found = os.fspath(value)
    except TypeError:
        found = b""
    if not isinstance(found, str):
        raise refused(value, name, "no name or path", "give a name, or the path of a file", error)
    if not found or "\0" in found or not _is_unicode(found) or not _fits(found):
        raise refused(found, name, "no name of a file", "check the path", error)
    return found


def folders(name: str, value: Any) -> list[str]:  # noqa: ANN401 (whatever was handed in)
    """Paths as a list, or one alone."""
    alone = isinstance(value, str | os.PathLike)
    if not alone and not isinstance(value, Iterable):
        raise refused(value, name, "no list of paths", "give a list of paths")
    return [path(name, each) for each in ([value] if alone else value)]


def sources(name: str, value: Any) -> list[str]:  # noqa: ANN401 (whatever was handed in)
    """Paths as :func:`folders` reads them, and at least one."""
    found = folders(name, value)
    if not found:
        raise refused(value, name, "no list of paths", "give at least one")
    return found


def words(name: str, value: Any) -> list[str]:  # noqa: ANN401 (whatever was handed in)
    """A program with its arguments."""
    if isinstance(value, str):
        raise refused(value, name, "no list of words", f"give its words, as {shlex.split('./app 8')}")
    if isinstance(value, bytes | Mapping) or not isinstance(value, Iterable):
        raise refused(value, name, "no command", "give a program and its arguments, as ['./app', '8']")
    found = [_word(name, each) for each in value]
    if not found:
        raise refused(value, name, "no command", "give a program and its arguments, as ['./app', '8']")
    return found


def commands(name: str, value: Any) -> list[list[str]]:  # noqa: ANN401 (whatever was handed in)
    """Programs with their arguments."""
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise refused(value, name, "no list of commands", "give a list of commands, as [['./app', '8']]")
    found = [words(name, each) for each in value]
    if not found:
        raise refused(value, name, "no commands", "give a list of commands, as [['./app', '8']]")
    return found


def teams(name: str, value: Any) -> int | dict[str, int]:  # noqa: ANN401 (whatever was handed in)
    """Threads, or threads by socket."""
    if isinstance(value, Mapping) and value:
        return {text(name, socket): THREADS(f"{name}.{socket}", many) for socket, many in value.items()}
    number: int = THREADS(name, value)
    return number


def each(reader: Reader) -> Reader:
    """A list of what `reader` reads."""

    def read(name: str, value: Any) -> list[Any]:  # noqa: ANN401 (whatever was handed in)
        if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
            raise refused(value, name, "no list", "give a list")
        return [reader(name, one) for one in value]

    return read


def parts(reader: Reader, of_text: Callable[[str], Any]) -> Reader:
    """A list of what `reader` reads, or one text as on the command line, of whose parts `of_text` makes that.

    Example:
        >>> parts(whole(1), number_in)("threads", "1,2")
        [1, 2]
    """
    whole_list = each(reader)
    return lambda name, value: whole_list(
        name, [of_text(one) for one in names(name, value)] if isinstance(value, str) else value
    )


def number_in(text: str) -> int | str:
    """The whole number that a text is; the text, which a reader of numbers refuses, where it is none."""
    return int(text) if text.isdecimal() else text


def table(reader: Reader, key: Reader = text) -> Reader:
    """A mapping from what `key` reads, texts by default, to what `reader` reads."""

    def read(name: str, value: Any) -> dict[Any, Any]:  # noqa: ANN401 (whatever was handed in)
        if not isinstance(value, Mapping):
            raise refused(value, name, "no mapping", "give a dictionary")
        return {key(name, one): reader(f"{name}.{one}", other) for one, other in value.items()}

    return read


def or_none(reader: Reader) -> Reader:
    """What `reader` reads, or None, which stands for what is usual."""
    return lambda name, value: None if value is None else reader(name, value)


def instance(kind: Any, hint: str) -> Reader:  # noqa: ANN401 (a class, or several)
    """An object of ours, which no text can stand for."""
    kinds = [each.__name__ for each in get_args(kind) or (kind,) if each is not type(None)]

    def read(name: str, value: Any) -> Any:  # noqa: ANN401 (whatever was handed in)
        if not isinstance(value, kind):
            raise refused(value, name, f"no {' or '.join(kinds)}", hint)
        return value

    return read


def refused(
    value: Any,  # noqa: ANN401 (whatever was handed in)
    name: str,
    why: str,
    hint: str,
    error: type[RequestError] = RequestError,
) -> RequestError:
    """The error to raise for an argument that cannot be meant.

    Example:
        >>> print(refused(-1, "threads", "no such number", "give a whole number of 1 or more"))
        threads: -1 is no such number
        hint: give a whole number of 1 or more
    """
    shown = value.item() if type(value).__module__ == "numpy" and getattr(value, "ndim", 1) == 0 else value
    said = repr(shown)
    said = said if len(said) <= SHOWN else f"{said[:SHOWN]}…"
    # Names of files need not be text; Python keeps such a byte as half of a surrogate pair.
    said = re.sub(r"\\udc([89a-f][0-9a-f])", r"\\x\1", said.encode("utf-8", "backslashreplace").decode())
    return error(f"{name}: {said} is {why}\nhint: {hint}")


SHOWN = 60
"""Characters of a value that an error repeats."""

THREADS = whole(1, MOST_THREADS)

READERS: dict[str, Reader] = {
    "threads": or_none(THREADS),
    "socket": or_none(text),
    "nodes": or_none(names),
    "policies": or_none(names),
    "policy": text,
    "what_if": names,
    "compare": names,
    "seed": whole(0, MOST_SEED),
    "mlp": real(1.0, 1e9),
    "ns_per_access": real(0.0, 1e9),
    "theta": real(0.0, 100.0),
    "seconds": real(0.0, 1e9),
    "gb_s": real(0.0, 1e9),
    "write_share": real(0.0, 1.0),
    "read_fraction": real(0.0, 1.0),
    "steps": whole(2, 10**6),
    "knobs": or_none(table(real(-math.inf))),
    "hz": or_none(whole(1, 10**6)),
    "command": words,
    "commands": commands,
    "runs": whole(1, 10**6),
    "variable": text,
    "stage": text,
    "folder": or_none(path),
    "keep": or_none(path),
    "binaries": folders,
    "counts": folders,
    "name": or_none(text),
    "cores": or_none(whole(1, MOST_THREADS)),
    "pid": whole(1, 2**31 - 1),
    "batch": or_none(whole(1)),
    "link_gb_s": or_none(real()),
    "weight_bits": or_none(real()),
    "kv_bits": or_none(real()),
    **dict.fromkeys(("prompt", "generate", "sequence", "accumulate", "sessions", "context", "backends"), whole(1)),
}
"""What words mean, wherever a function of the API takes them."""


def _word(name: str, value: object) -> str:
    if isinstance(value, str | os.PathLike):
        found = os.fspath(value)
        if isinstance(found, str) and "\0" not in found and _is_unicode(found):
            return found
    raise refused(value, name, "no word of a command", "give texts, as ['./app', '8']")


def _index(value: Any) -> int | None:  # noqa: ANN401 (whatever was handed in)
    """The whole number that a value is, none where it is another."""
    if _is_real(value) and float(value).is_integer():
        return int(value)
    try:
        return None if _is_truth(value) else operator.index(value)
    except TypeError:
        return None


def _is_real(value: Any) -> bool:  # noqa: ANN401 (whatever was handed in)
    """A number that has no index, as those of NumPy are, too."""
    return isinstance(value, numbers.Real) and not isinstance(value, numbers.Integral)


def _is_truth(value: object) -> bool:
    """A truth is no number here, though Python takes it for one: `threads=True` is a mistake."""
    return isinstance(value, bool) or type(value).__name__ == "bool_"


def _is_unicode(found: str) -> bool:
    try:
        found.encode()
    except UnicodeEncodeError:
        return False
    return True


def _fits(found: str) -> bool:
    whole_path = found.encode()
    return len(whole_path) <= LONGEST_PATH and all(len(part) <= LONGEST_NAME for part in whole_path.split(b"/"))
