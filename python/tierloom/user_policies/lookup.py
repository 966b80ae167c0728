"""Policies found by what stands for them: a file, an entry point, or the function or class itself."""

from __future__ import annotations

import hashlib
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from tierloom.errors import RequestError
from tierloom.readers import reading

PLACEMENT, MIGRATION = "tierloom.placement_policies", "tierloom.migration_policies"
"""Groups of entry points."""

IN_FILE = re.compile(r"(.+\.py):(\w+)")

FIX = "fix the policy, or leave it out"

Asked = str | Callable[..., Any]
"""A name, or the function or class itself."""

Known = Callable[[], Sequence[str]]
"""Names of an engine's own policies, or their shapes where something stands behind a colon."""


@dataclass(frozen=True)
class UserPolicy:
    """A policy of one's own: by what name it was asked for, and what was found there.

    One of a file can be pickled: it takes the file's text along, so that a worker elsewhere runs the same.
    """

    name: str
    made_of: Callable[..., Any]
    file: str = ""
    text: str = ""

    def __call__(self, *words: object, **knobs: object) -> Any:  # noqa: ANN401 (what the user's policy returns)
        """Calls the function, or makes an object of the class."""
        return self.made_of(*words, **knobs)

    def __reduce__(self) -> tuple[Callable[..., UserPolicy], tuple[Any, ...]]:
        if self.text:
            return of_text, (self.name, self.file, self.text)
        return UserPolicy, (self.name, self.made_of)

    @property
    def about(self) -> str:
        """What it does: the first line of its docstring."""
        return (self.made_of.__doc__ or "").strip().partition("\n")[0] or "a policy of yours, without a docstring"

    def raised(self, error: Exception, hint: str = FIX) -> RequestError:
        """What it raised, as an error that names the line of its file."""
        file = self.file or getattr(sys.modules.get(getattr(self.made_of, "__module__", "")), "__file__", None)
        return _raised(self.name, file, error, hint)


def policies(asked: Iterable[Asked] | None, group: str, known: Known) -> tuple[list[str] | None, list[UserPolicy]]:
    """Names of policies as an engine takes them, and those among them that are users' own.

    Args:
        asked: Names, functions and classes; None stands for what is usual.
        group: Where packages offer such policies.
        known: Names of the policies that the engine has.

    Raises:
        RequestError: A file cannot be read, or does not hold what its name says; two go by one name.
    """
    if asked is None:
        return None, []
    found = [policy(each, group, known) for each in asked]
    own = {each.name: each for each in found if isinstance(each, UserPolicy)}
    for each in found:
        if isinstance(each, UserPolicy) and own[each.name].made_of is not each.made_of:
            message = f"two policies are called `{each.name}`\nhint: give one of the functions another name"
            raise RequestError(message)
    return [each if isinstance(each, str) else each.name for each in found], list(own.values())


def policy(asked: Asked, group: str, known: Known) -> str | UserPolicy:
    """What is meant by one name, or by the function or class itself; a name of ours stays one.

    Raises:
        RequestError: There is no such policy, a file cannot be read, or does not hold what its name says.
    """
    if isinstance(asked, UserPolicy):
        return asked
    names = known()
    ours = {name.partition(":")[0] for name in names}
    if callable(asked):
        name = getattr(asked, "__name__", type(asked).__name__)
        if name in ours:
            message = f"`{name}` is a policy of ours\nhint: give your function another name"
            raise RequestError(message)
        return UserPolicy(name, asked)
    if in_file := IN_FILE.fullmatch(asked):
        return _of_file(asked, Path(in_file[1]))
    if asked.partition(":")[0] in ours:
        return asked
    return _installed(asked, group, names)


def written(asked: Any, base: Path) -> Any:  # noqa: ANN401 (what a study's file holds)
    """A study's policies with the text of their files, which lie beside the study; anything else as it is.

    Raises:
        RequestError: A file cannot be read, or does not hold what its name says.
    """
    if isinstance(asked, list):
        return [written(each, base) for each in asked]
    if not isinstance(asked, str):
        return asked
    if "," in asked:
        return [written(each.strip(), base) for each in asked.split(",")]
    in_file = IN_FILE.fullmatch(asked)
    if in_file is None:
        return asked
    beside = base / in_file[1]
    return _of_file(asked, beside if beside.is_file() else Path(in_file[1]))


def digest(asked: Any) -> str:  # noqa: ANN401 (as above)
    """What results under policies depend on: their names, the text of their files, the versions of their packages."""
    listed = asked if isinstance(asked, list) else [asked]
    told = [f"{each.name}\0{each.text}" if isinstance(each, UserPolicy) else repr(each) for each in listed]
    return hashlib.sha256("\0".join([*told, *_versions(map(str, listed))]).encode()).hexdigest()


def of_text(name: str, file: str, text: str) -> UserPolicy:
    """The policy that a file's text holds under the name behind the colon.

    Raises:
        RequestError: The text does not run, or holds no such function or class.
    """
    called = name.rpartition(":")[2]
    found = getattr(_module(name, file, text), called, None)
    if not callable(found):
        message = f"{file}: it has no function or class `{called}`\nhint: check the name behind the colon"
        raise RequestError(message)
    return UserPolicy(name, found, file, text)


def _of_file(name: str, file: Path) -> UserPolicy:
    if not file.is_file():
        message = f"{file}: no such file\nhint: check the path, or name an installed policy"
        raise RequestError(message)
    with reading(file, "file of Python", "give a file of Python"):
        text = file.read_text(encoding="utf-8")
    return of_text(name, str(file), text)


def _module(name: str, file: str, text: str) -> ModuleType:
    """The module of a text, run once: what it keeps in variables of its own stays from run to run."""
    called = f"tierloom_policy_{hashlib.sha256(f'{file}{text}'.encode()).hexdigest()[:16]}"
    if called in sys.modules:
        return sys.modules[called]
    module = ModuleType(called)
    module.__file__ = file
    sys.modules[called] = module
    try:
        exec(compile(text, file, "exec"), module.__dict__)  # noqa: S102 (it is asked for by its name)
    except Exception as error:
        del sys.modules[called]
        raise _raised(name, file, error, FIX) from error
    return module


def _installed(name: str, group: str, known: Sequence[str]) -> UserPolicy:
    from importlib.metadata import entry_points

    found = [entry for entry in entry_points(group=group) if entry.name == name]
    if len(found) > 1:
        message = f"{len(found)} packages offer a policy `{name}`\nhint: remove one of them"
        raise RequestError(message)
    if not found:
        message = (
            f"there is no policy `{name}`\nhint: use one of: {', '.join(known)}, or FILE.py:NAME for one of your own"
        )
        raise RequestError(message)
    try:
        loaded = found[0].load()
    except Exception as error:
        raise _raised(name, None, error, FIX) from error
    if not callable(loaded):
        message = f"policy `{name}`: {found[0].value} is no function or class\nhint: mend the package's entry point"
        raise RequestError(message)
    return UserPolicy(name, loaded)


def _raised(name: str, file: str | None, error: Exception, hint: str) -> RequestError:
    """An exception as one line: what it says, and the last line of the policy's file that it passed through."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    line = error.lineno if isinstance(error, SyntaxError) else frames[-1].lineno if frames else None
    where = f" ({file}:{line})" if file and line else ""
    told = f"{type(error).__name__}: {error.msg if isinstance(error, SyntaxError) else error}".strip(": ")
    return RequestError(f"policy `{name}`: {told}{where}\nhint: {hint}")


def _versions(names: Iterable[str]) -> list[str]:
    """By policy that an installed package brings: which version of which."""
    from importlib.metadata import entry_points

    listed = set(names)
    found = [entry for group in (PLACEMENT, MIGRATION) for entry in entry_points(group=group) if entry.name in listed]
    return [f"{entry.name}={entry.dist.name}-{entry.dist.version}" for entry in found if entry.dist]
