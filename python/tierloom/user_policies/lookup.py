"""Policies found by what stands for them: a file, an entry point, or the function or class itself."""

from __future__ import annotations

import hashlib
import importlib.util
import re
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tierloom.errors import RequestError

PLACEMENT, MIGRATION = "tierloom.placement_policies", "tierloom.migration_policies"
"""Groups of entry points."""

IN_FILE = re.compile(r"(.+\.py):(\w+)")
HERE = str(Path(__file__).parent)


@dataclass(frozen=True)
class UserPolicy:
    """A policy of one's own: by what name it was asked for, and what was found there."""

    name: str
    made_of: Callable[..., Any]

    @property
    def about(self) -> str:
        """What it does: the first line of its docstring."""
        return (self.made_of.__doc__ or "").strip().partition("\n")[0] or "a policy of yours, without a docstring"


def policies(
    asked: Iterable[str | Callable[..., Any]] | None, group: str, known: Callable[[], Iterable[str]]
) -> tuple[list[str] | None, list[UserPolicy]]:
    """Names of policies as an engine takes them, and those among them that are users' own.

    Args:
        asked: Names, functions and classes; None stands for what is usual.
        group: Where packages offer such policies.
        known: Names of the policies that the engine has.

    Raises:
        RequestError: A file cannot be read, or does not hold what its name says.
    """
    if asked is None:
        return None, []
    found = [policy(each, group, known) for each in asked]
    return [each if isinstance(each, str) else each.name for each in found], [
        each for each in found if isinstance(each, UserPolicy)
    ]


def policy(asked: str | Callable[..., Any], group: str, known: Callable[[], Iterable[str]]) -> str | UserPolicy:
    """What is meant by one name, or by the function or class itself; a name of ours stays one.

    Raises:
        RequestError: A file cannot be read, or does not hold what its name says.
    """
    if not isinstance(asked, str):
        return UserPolicy(getattr(asked, "__name__", type(asked).__name__), asked)
    if in_file := IN_FILE.fullmatch(asked):
        return UserPolicy(asked, _in_file(Path(in_file[1]), in_file[2]))
    if asked.partition(":")[0] in known():
        return asked
    from importlib.metadata import entry_points

    installed = [entry for entry in entry_points(group=group) if entry.name == asked]
    return UserPolicy(asked, _loaded(asked, installed[0].load)) if installed else asked


def source(names: str | Iterable[str]) -> str:
    """A digest of the files that policies of these names are in; empty where all are ours.

    Results that are kept depend on it. Of a package that is installed its version is taken.
    """
    listed = [each.strip() for each in names.split(",")] if isinstance(names, str) else list(names)
    files = [Path(found[1]) for name in listed if (found := IN_FILE.fullmatch(name))]
    told = [file.read_bytes() for file in files if file.is_file()] + _versions(listed)
    return hashlib.sha256(b"\0".join(told)).hexdigest() if told else ""


def raised(name: str, error: Exception) -> RequestError:
    """What a policy raised, and the last of its lines that the exception passed through."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(HERE)]
    where = f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
    told = f"{type(error).__name__}: {error}".strip(": ")
    hint = "mend the policy, or leave it out; raise tierloom.errors.PlacementError where it has no answer"
    return RequestError(f"policy `{name}`: {told}{where}\nhint: {hint}")


def _in_file(file: Path, name: str) -> Callable[..., Any]:
    def load() -> Any:  # noqa: ANN401 (what the file holds)
        spec = importlib.util.spec_from_file_location(f"tierloom_policy_{file.stem}", file)
        if spec is None or spec.loader is None:
            raise ImportError(file)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return getattr(module, name, None)

    if not file.is_file():
        message = f"{file}: no such file\nhint: check the path, or name an installed policy"
        raise RequestError(message)
    found = _loaded(f"{file}:{name}", load)
    if not callable(found):
        message = f"{file}: it has no function or class `{name}`\nhint: check the name behind the colon"
        raise RequestError(message)
    return found  # type: ignore[no-any-return]


def _loaded(name: str, load: Callable[[], Any]) -> Any:  # noqa: ANN401 (as above)
    try:
        return load()
    except Exception as error:
        raise raised(name, error) from error


def _versions(names: list[str]) -> list[bytes]:
    """By policy that an installed package brings: which version of which."""
    from importlib.metadata import entry_points

    found = [entry for group in (PLACEMENT, MIGRATION) for entry in entry_points(group=group) if entry.name in names]
    return [f"{entry.name}={entry.dist.name}-{entry.dist.version}".encode() for entry in found if entry.dist]
