"""Policies of one's own, in Python: where data is placed, and which pages move while a program runs.

A policy is asked for by what stands for it in a list of policies: ``FILE.py:NAME``, the name of an entry point of an
installed package, or from Python the function or class itself.

- A **placement policy** (group ``tierloom.placement_policies``) is a function from a :class:`PlacementQuestion` to the
  place of each object, in the words that name a policy elsewhere: ``{"rank": "bind:ldram", "edges":
  "interleave:ldram+cxl"}``. What it does not name is left to first touch.
- A **migration policy** (group ``tierloom.migration_policies``) is a class whose objects ``look`` at a
  :class:`MigrationView` every ``period_s`` and return the moves: ``(group, from, to, pages)``. Its arguments are its
  knobs.

A policy that has no answer raises :class:`tierloom.errors.PlacementError` with the reason, which then stands in the
table beside the other policies' times. Anything else that it raises ends the request, with the line that raised it.
"""

from __future__ import annotations

import hashlib
import importlib.util
import math
import re
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tierloom.arguments import refused
from tierloom.errors import PlacementError, RequestError

if TYPE_CHECKING:
    import numpy.typing as npt

    from tierloom.nouns import Machine, Profile
    from tierloom.schema import ObjectDoc

    Numbers = npt.NDArray[np.float64]

PLACEMENT, MIGRATION = "tierloom.placement_policies", "tierloom.migration_policies"
"""Groups of entry points."""

Move = tuple[int, "int | str", "int | str", float]
"""Position of a group, the memory that its pages leave and the one that they go to, by position or name, and how many
pages."""


@dataclass(frozen=True)
class PlacementQuestion:
    """What a placement policy is asked: the program, the machine, and which memory may be used."""

    profile: Profile
    machine: Machine
    nodes: Mapping[str, int]
    """Bytes that may be used by memory, nearest first; of the fast one no more than was allowed."""
    fast: str
    """The memory that is short and dear."""

    @property
    def objects(self) -> Sequence[ObjectDoc]:
        """The program's data objects, as the profile has them."""
        return self.profile.data["objects"]


@dataclass(frozen=True)
class MigrationView:
    """What a migration policy may look at: pages that a sampler cannot tell apart are one group.

    Groups stand in the order of their addresses. Rates are of the time since the last look.
    """

    now_s: float
    """Seconds from the start of the run."""
    since_s: float
    """Seconds since the last look."""
    nodes: tuple[str, ...]
    """Names of the memories, nearest first."""
    region: npt.NDArray[np.int64]
    """By group: position of the object that it is part of."""
    pages: Numbers
    """By group and memory: pages there."""
    reads: Numbers
    """By group: reads that missed the last-level cache, per page and second."""
    writes: Numbers
    """By group: lines written back, per page and second; 0 where pages are followed one by one."""
    visits: Numbers
    """By group: visits, per page and second, as accessed bits would show."""
    free: Numbers
    """By memory: free pages."""
    low: Numbers
    """By memory: its low watermark, pages: with fewer free ones the kernel begins to reclaim."""
    latency_ns: Numbers
    """By memory: latency under the load of now, ns."""


@dataclass(frozen=True)
class UserPolicy:
    """A policy of one's own: by what name it was asked for, and what was found there."""

    name: str
    made_of: Callable[..., Any]

    @property
    def about(self) -> str:
        """What it does: the first line of its docstring."""
        return (self.made_of.__doc__ or "").strip().partition("\n")[0] or "a policy of yours, without a docstring"


def placement_policies(
    asked: Iterable[str | Callable[..., Any]] | None, known: Callable[[], Iterable[str]]
) -> tuple[list[str] | None, list[UserPolicy]]:
    """Names of policies as the planner takes them, and those among them that are users' own.

    Args:
        asked: Names and functions; None stands for all usual policies.
        known: Names of the policies that the planner has.

    Raises:
        RequestError: A file cannot be read, or does not hold what its name says.
    """
    if asked is None:
        return None, []
    found = [policy(each, PLACEMENT, known) for each in asked]
    return [_name(each) for each in found], [each for each in found if isinstance(each, UserPolicy)]


def policy(
    asked: str | Callable[..., Any], group: str, known: Callable[[], Iterable[str]]
) -> str | UserPolicy:
    """What is meant by one name, or by the function or class itself; a name of ours stays one.

    Raises:
        RequestError: A file cannot be read, or does not hold what its name says.
    """
    if not isinstance(asked, str):
        return UserPolicy(getattr(asked, "__name__", type(asked).__name__), asked)
    if in_file := re.fullmatch(r"(.+\.py):(\w+)", asked):
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
    files = [Path(found[1]) for name in listed if (found := re.fullmatch(r"(.+\.py):\w+", name))]
    told = [file.read_bytes() for file in files if file.is_file()] + _versions(listed)
    return hashlib.sha256(b"\0".join(told)).hexdigest() if told else ""


def placing(found: UserPolicy, profile: Profile, machine: Machine) -> tuple[str, str, Callable[..., Any]]:
    """A placement policy as the core calls it: its name, what it does, and a function that answers with actions."""

    def actions(room: list[tuple[str, int]], fast: str) -> list[Any] | str:
        question = PlacementQuestion(profile, machine, dict(room), fast)
        try:
            told = found.made_of(question)
        except PlacementError as reason:
            return str(reason)
        except Exception as error:
            raise _raised(found.name, error) from error
        return _by_object(found.name, told, [item["name"] for item in question.objects])

    return found.name, found.about, actions


@dataclass(frozen=True)
class Migrating:
    """A migration policy as the core takes it."""

    name: str
    about: str
    period_s: float
    sample_period: float
    waits_for_copy: bool
    shootdowns: float
    knobs: list[tuple[str, float]]
    make: Callable[[], Callable[..., list[tuple[int, int, int, float]]]]
    """Starts the policy anew; returns what looks."""


def migrating(found: UserPolicy, knobs: Mapping[str, float]) -> Migrating:
    """A migration policy with these knobs.

    Raises:
        RequestError: It takes no such knob, has no `look`, or no period.
    """

    def start() -> Any:  # noqa: ANN401 (a class of the user's)
        try:
            return found.made_of(**knobs)
        except Exception as error:
            raise _raised(found.name, error) from error

    first = start()
    if not callable(getattr(first, "look", None)):
        message = f"policy `{found.name}` has no `look`\nhint: give it a method look(self, view) that returns moves"
        raise RequestError(message)

    def make() -> Callable[..., list[tuple[int, int, int, float]]]:
        policy = start()
        return lambda *told: _moves(found.name, policy, _view(*told))

    return Migrating(
        found.name,
        found.about,
        period_s=_figure(found.name, first, "period_s", above=0.0),
        sample_period=_figure(found.name, first, "sample_period", 0.0),
        waits_for_copy=bool(getattr(first, "waits_for_copy", False)),
        shootdowns=_figure(found.name, first, "shootdowns", 1.0),
        knobs=sorted(knobs.items()),
        make=make,
    )


def place(words: str) -> str | dict[str, Any]:
    """An object's place as the plan file has it.

    Raises:
        ValueError: The words name none.

    Example:
        >>> place("bind:cxl"), place("weighted:ldram=3+cxl=1"), place("local")
        ({'bind': ['cxl']}, {'weighted': {'ldram': 3, 'cxl': 1}}, 'first_touch')
    """
    kind, _, told = words.partition(":")
    nodes = [node for node in told.split("+") if node]
    if kind == "local" and not told:
        return "first_touch"
    if kind == "preferred" and nodes:
        return {"prefer": nodes[0]} if len(nodes) == 1 else {"prefer_many": nodes}
    if kind in ("bind", "interleave") and nodes:
        return {kind: nodes}
    if kind == "weighted" and nodes:
        weights = [re.fullmatch(r"(.+)=(\d+)", node) for node in nodes]
        if all(weights):
            return {"weighted": {each[1]: int(each[2]) for each in weights if each}}
    raise ValueError(words)


PLACES = "local, preferred:A, preferred:A+B, bind:A+B, interleave:A+B or weighted:A=3+B=1"


def _by_object(name: str, told: object, objects: list[str]) -> list[Any]:
    if not isinstance(told, Mapping):
        hint = "return a place by object, as {'rank': 'bind:ldram'}"
        raise refused(told, f"policy `{name}`", "no mapping", hint)
    for item in told:
        if item not in objects:
            shown = ", ".join(objects[:8]) + (", …" if len(objects) > 8 else "")
            raise refused(item, f"policy `{name}`", "no object of this profile", f"use names such as: {shown}")
    return [_place(name, item, told.get(item, "local")) for item in objects]


def _place(name: str, item: str, words: object) -> str | dict[str, Any]:
    try:
        return place(words if isinstance(words, str) else "")
    except ValueError:
        raise refused(words, f"policy `{name}`, object `{item}`", "no place", f"write {PLACES}") from None


def _view(
    now_s: float,
    since_s: float,
    nodes: list[str],
    region: bytes,
    pages: bytes,
    rates: tuple[bytes, bytes, bytes],
    rooms: tuple[bytes, bytes, bytes],
) -> MigrationView:
    reads, writes, visits = map(np.frombuffer, rates)
    free, low, latency_ns = map(np.frombuffer, rooms)
    held = np.frombuffer(pages).reshape(-1, len(nodes))
    where = np.frombuffer(region).astype(np.int64)
    return MigrationView(now_s, since_s, tuple(nodes), where, held, reads, writes, visits, free, low, latency_ns)


def _moves(name: str, policy: Any, view: MigrationView) -> list[tuple[int, int, int, float]]:  # noqa: ANN401 (as above)
    try:
        told = [tuple(each) for each in policy.look(view) or ()]
    except Exception as error:
        raise _raised(name, error) from error
    return [_move(name, each, view) for each in told]


def _move(name: str, told: tuple[Any, ...], view: MigrationView) -> tuple[int, int, int, float]:
    try:
        group, origin, target, pages = told
        group, pages = int(group), float(pages)
        origin, target = (view.nodes.index(at) if isinstance(at, str) else int(at) for at in (origin, target))
    except (TypeError, ValueError):
        group = origin = target = -1
        pages = math.nan
    last = len(view.nodes)
    if not (0 <= group < len(view.region) and 0 <= origin < last and 0 <= target < last and pages >= 0.0):
        hint = f"return (group, from, to, pages) with a group below {len(view.region)} and two of {', '.join(view.nodes)}"
        raise refused(told, f"policy `{name}`", "no move", hint)
    return group, origin, target, 0.0 if origin == target else min(pages, float(view.pages[group, origin]))


def _figure(name: str, of: object, what: str, default: float | None = None, above: float = -1.0) -> float:
    value = getattr(of, what, default)
    good = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not good or value < 0.0 or value <= above:
        size = "above 0" if above == 0.0 else "of 0 or more"
        raise refused(value, f"policy `{name}`, {what}", "no such number", f"set {what} in the class, to a number {size}")
    return float(value)


def _name(found: str | UserPolicy) -> str:
    return found if isinstance(found, str) else found.name


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
        raise _raised(name, error) from error


def _raised(name: str, error: Exception) -> RequestError:
    """What a policy raised, and the last of its lines that the exception passed through."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename != __file__]
    where = f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
    told = f"{type(error).__name__}: {error}".strip(": ")
    hint = "mend the policy, or leave it out; raise tierloom.errors.PlacementError where it has no answer"
    return RequestError(f"policy `{name}`: {told}{where}\nhint: {hint}")


def _versions(names: list[str]) -> list[bytes]:
    """By policy that an installed package brings: which version of which."""
    from importlib.metadata import entry_points

    found = [entry for group in (PLACEMENT, MIGRATION) for entry in entry_points(group=group) if entry.name in names]
    return [f"{entry.name}={entry.dist.name}-{entry.dist.version}".encode() for entry in found if entry.dist]
