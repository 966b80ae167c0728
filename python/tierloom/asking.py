"""What people type in a notebook: names, paths or nouns in, answers that show themselves out.

Nothing is computed here: names become nouns, placements become shares of pages, and :mod:`tierloom.planning`
answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tierloom.nouns import Machine, Profile
from tierloom.placements import fractions
from tierloom.planning import Comparison, Prediction, compare
from tierloom.planning import predict as predict_document

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tierloom.quantities import Amount

    Placement = str | Mapping[str, float] | Sequence[Sequence[float]]


def machine(name_or_path: str | Path) -> Machine:
    """A machine of the catalog by its name, or of a file by its path.

    Raises:
        MachineError: There is no such machine, or the file does not hold one.

    Example:
        >>> machine("liu-a")
        <Machine liu-a: rdram, ldram, cxl>
    """
    return Machine.load(name_or_path)


def profile(name_or_path: str | Path) -> Profile:
    """A profile of the catalog by its name, or of a ``.profile`` folder by its path.

    :func:`tierloom.record` makes one of a program.

    Raises:
        ProfileError: There is no such profile, or the folder does not hold one.

    Example:
        >>> profile("mg-e")
        <Profile mg-e: 3 objects>
    """
    return Profile.load(name_or_path)


def plan(
    profile: Profile | str | Path,
    machine: Machine | str | Path,
    *,
    threads: int | None = None,
    socket: str | None = None,
    nodes: Sequence[str] | None = None,
    fast_memory: Amount | None = None,
    max_slowdown: str | float | None = None,
    policies: Sequence[str] | None = None,
) -> Comparison:
    """Compares every placement policy and chooses one, as the verb ``plan`` does.

    Args:
        profile: What the program does with its data: a profile, a name of the catalog, or a folder.
        machine: What memory there is: a machine, a name of the catalog, or a file.
        threads: Threads that the program will run with; those of the profile by default.
        socket: Where the threads run; the machine's first socket by default.
        nodes: Memories that may be used; all that the socket reaches by default.
        fast_memory: Fast memory that may be used: bytes, ``"64GiB"``, or ``"50%"`` of the footprint.
        max_slowdown: Take the least fast memory whose time stays within this share of the time with
            all data in fast memory, for example ``"5%"``.
        policies: Names of the policies to compare, such as ``"interleave:ldram+cxl"``; all by default.

    Returns:
        A table, a row a policy; ``.chosen`` is the best and ``.plan()`` its rules.

    Raises:
        RequestError: A quantity or a name is wrong.
        PlacementError: No placement does what was asked for.

    Example:
        >>> answer = plan("mg-e", "liu-a", threads=32, fast_memory="64GiB")
        >>> answer.chosen["policy"]
        'tierloom'
    """
    return compare(
        _profile(profile),
        _machine(machine),
        threads=threads,
        socket=socket,
        nodes=nodes,
        fast_memory=fast_memory,
        max_slowdown=max_slowdown,
        policies=policies,
    )


def predict(
    profile: Profile | str | Path,
    machine: Machine | str | Path,
    placement: Placement,
    *,
    rest: str | None = None,
    threads: int | None = None,
    socket: str | None = None,
) -> Prediction:
    """How long a program takes under one placement.

    Args:
        profile: What the program does with its data: a profile, a name of the catalog, or a folder.
        machine: What memory there is: a machine, a name of the catalog, or a file.
        placement: A policy such as ``"interleave:ldram+cxl"``; shares of pages by object and memory, such as
            ``{"u.cxl": 0.5}`` (``*`` for all other objects); or a row of shares for each object of the profile.
        rest: Memory of the pages that shares leave over; the nearest by default.
        threads: Threads that the program will run with; those of the profile by default.
        socket: Where the threads run; the machine's first socket by default.

    Raises:
        RequestError: An object, a memory, a policy or a share is wrong.
        PlacementError: The policy cannot be used here.

    Example:
        >>> predict("mg-e", "liu-a", {"*.cxl": 0.1}, threads=32).time_s < predict(
        ...     "mg-e", "liu-a", "interleave:ldram+cxl", threads=32
        ... ).time_s
        True
    """
    program, on = _profile(profile), _machine(machine)
    if isinstance(placement, str):
        answer = compare(program, on, threads=threads, socket=socket, policies=[placement])
        return Prediction(answer.chosen["outcome"]["Ok"])
    shares = fractions(program, on, placement, rest, socket) if isinstance(placement, Mapping) else placement
    return Prediction(predict_document(program, on, shares, threads=threads, socket=socket))


def _profile(given: Profile | str | Path) -> Profile:
    return given if isinstance(given, Profile) else Profile.load(given)


def _machine(given: Machine | str | Path) -> Machine:
    return given if isinstance(given, Machine) else Machine.load(given)
