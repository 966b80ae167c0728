"""Which CPUs threads are held on: one a core, close together or spread over the sockets.

The words are OpenMP's (``OMP_PROC_BIND``): *close* fills one socket before the next, *spread* takes
them in turn. Second hardware threads of cores come last either way.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from tierloom.errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Iterable

Affinity = Literal["close", "spread"]
AFFINITIES: tuple[Affinity, ...] = ("close", "spread")


@dataclass(frozen=True)
class Cpu:
    """A hardware thread, and the core and socket that it is of."""

    number: int
    socket: int
    core: int


def allowed(root: Path = Path("/"), numbers: Iterable[int] | None = None) -> list[Cpu]:
    """CPUs that this process may use, by number; a kernel that tells no topology has one socket of them."""
    found = sorted(os.sched_getaffinity(0) if numbers is None else numbers)
    return [
        Cpu(number, _told(root, number, "physical_package_id", 0), _told(root, number, "core_id", number))
        for number in found
    ]


def sockets(cpus: Iterable[Cpu]) -> list[int]:
    """The sockets of CPUs, by number."""
    return sorted({cpu.socket for cpu in cpus})


def order(cpus: Iterable[Cpu], affinity: Affinity) -> list[int]:
    """Numbers of CPUs in the order in which threads take them."""
    ranks: dict[int, dict[int, list[int]]] = {}
    seen: Counter[tuple[int, int]] = Counter()
    for cpu in sorted(cpus, key=lambda cpu: cpu.number):
        rank = seen[cpu.socket, cpu.core]
        seen[cpu.socket, cpu.core] += 1
        ranks.setdefault(rank, {}).setdefault(cpu.socket, []).append(cpu.number)
    return [number for _, rows in sorted(ranks.items()) for number in _in_turn(rows, affinity)]


def chosen(text: str, cpus: Iterable[Cpu]) -> list[Cpu]:
    """CPUs that a list such as ``0-9,20`` names.

    Raises:
        RequestError: It is no such list, or names one that this process may not use.
    """
    known = {cpu.number: cpu for cpu in cpus}
    numbers: list[int] = []
    for part in text.split(","):
        first, dash, last = part.partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            message = f"--cpus {text}: `{part}` is no CPU and no range\nhint: write --cpus 0-9 or --cpus 0,2,4"
            raise RequestError(message)
        numbers += range(int(first), int(last or first) + 1)
    missing = [number for number in numbers if number not in known]
    if missing:
        message = f"--cpus {text}: CPU {missing[0]} is not there, or not for this process"
        message += f"\nhint: it may use {', '.join(map(str, known))}"
        raise RequestError(message)
    return [known[number] for number in dict.fromkeys(numbers)]


def _in_turn(rows: dict[int, list[int]], affinity: Affinity) -> list[int]:
    in_order = [rows[socket] for socket in sorted(rows)]
    if affinity == "close":
        return [number for row in in_order for number in row]
    return [number for column in zip_longest(*in_order) for number in column if number is not None]


def _told(root: Path, number: int, name: str, otherwise: int) -> int:
    path = root / "sys/devices/system/cpu" / f"cpu{number}" / "topology" / name
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return otherwise
