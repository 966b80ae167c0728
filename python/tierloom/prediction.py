"""What people type in a notebook: names, paths or nouns in, answers that show themselves out.

Nothing is computed here: names become nouns, placements become shares of pages, and :mod:`tierloom.policy_search`
answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tierloom.arguments import or_none, reads, refused, teams, text
from tierloom.errors import RequestError
from tierloom.nouns import Machine, Profile
from tierloom.placements import fractions
from tierloom.policy_search import Prediction, Threads, plan
from tierloom.policy_search import predict as predict_document

if TYPE_CHECKING:
    from collections.abc import Sequence

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


@reads(threads=or_none(teams), rest=or_none(text))
def predict(
    profile: Profile | str | Path,
    machine: Machine | str | Path,
    placement: Placement,
    *,
    rest: str | None = None,
    threads: Threads | None = None,
    socket: str | None = None,
) -> Prediction:
    """How long a program takes under one placement.

    Args:
        profile: What the program does with its data: a profile, a name of the catalog, or a folder.
        machine: What memory there is: a machine, a name of the catalog, or a file.
        placement: A policy such as ``"interleave:ldram+cxl"``; shares of pages by object and memory, such as
            ``{"u.cxl": 0.5}`` (``*`` for all other objects); or a row of shares for each object of the profile.
        rest: Memory of the pages that shares leave over; the nearest by default.
        threads: Threads that the program will run with; those of the profile by default. Where they run on
            several sockets, by socket, as ``{"socket0": 10, "socket1": 10}``; a policy is of one socket.
        socket: Where the threads run, or from where `rest` is near; the machine's first socket by default.

    Raises:
        RequestError: An object, a memory, a policy or a share is wrong.
        PlacementError: The policy cannot be used here.

    Example:
        >>> predict("mg-e", "liu-a", {"*.cxl": 0.1}, threads=32).time_s < predict(
        ...     "mg-e", "liu-a", "interleave:ldram+cxl", threads=32
        ... ).time_s
        True
    """
    program, on = Profile.of(profile), Machine.of(machine)
    if isinstance(placement, str):
        if isinstance(threads, Mapping):
            message = "a policy places for threads of one socket\nhint: give shares by object and memory"
            raise RequestError(message)
        answer = plan(program, on, threads=threads, socket=socket, policies=[text("placement", placement)])
        return Prediction(answer.chosen["prediction"])
    if not isinstance(placement, Iterable):
        raise refused(placement, "placement", "no placement", "give a policy's name, or shares as {'u.cxl': 0.5}")
    shares = fractions(program, on, placement, rest, socket) if isinstance(placement, Mapping) else placement
    return Prediction(predict_document(program, on, shares, threads=threads, socket=socket))
