"""A workload: what the page-migration simulator is told about a program."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, cast

import tierloom._core as _core
from tierloom import arguments, catalog
from tierloom.errors import RequestError, WorkloadError
from tierloom.nouns.profile import Profile
from tierloom.units import LINE_BYTES, PAGE_BYTES, Amount, amount_in_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tierloom.schema import WorkloadDoc

PATTERNS = ("zipf", "uniform", "scan", "phases")
"""Synthetic workloads."""


class Workload:
    """What the simulator is told about a program: regions of memory, and how phases visit their pages.

    Example:
        >>> Workload.load("graph500").name
        'graph500'
    """

    def __init__(self, core: _core.Workload) -> None:
        self.core = core

    @classmethod
    def from_data(cls, data: Mapping[str, object]) -> Workload:
        """A workload of a document such as :attr:`data`; its figures are checked when it is simulated.

        Raises:
            WorkloadError: The document does not hold a workload.
        """
        return cls(_core.Workload.from_document(data))

    def __reduce__(self) -> tuple[Callable[[Mapping[str, object]], Workload], tuple[Mapping[str, object]]]:
        return Workload.from_data, ({**self.data},)

    @cached_property
    def data(self) -> WorkloadDoc:
        """What the file says, as a document."""
        return cast("WorkloadDoc", self.core.document())

    @classmethod
    def load(cls, name_or_path: str | Path) -> Workload:
        """Reads a workload by its name in the catalog or the path of its TOML file.

        Raises:
            WorkloadError: There is no such workload, or the file does not hold one.
        """
        text = catalog.workload_text(arguments.path("workload", name_or_path, WorkloadError))
        return cls(_core.Workload.from_toml(text.content, text.file))

    @classmethod
    def of_profile(cls, profile: Profile, threads: int | None = None) -> Workload:
        """What a profile says, for a run on `threads` (those of the profile by default)."""
        wide = threads or profile.data["program"]["threads"]
        return cls(_core.Workload.of_profile(profile.core, wide))

    @classmethod
    def of(cls, given: Workload | Profile | str | Path, threads: int | None = None) -> Workload:
        """What is meant by a workload or a profile, or by the name or path of one."""
        if isinstance(given, Workload):
            return given
        if isinstance(given, Profile) or catalog.is_profile(arguments.path("workload", given, WorkloadError)):
            return cls.of_profile(Profile.of(given), threads)
        return cls.load(given)

    @classmethod
    @arguments.reads(threads=arguments.THREADS)
    def synthetic(
        cls,
        pattern: str,
        *,
        size: Amount = "16GiB",
        seconds: float = 60.0,
        gb_s: float = 4.0,
        theta: float = 0.99,
        threads: int = 16,
        mlp: float = 4.0,
        write_share: float = 0.2,
    ) -> Workload:
        """A workload of one region.

        Args:
            pattern: ``"zipf"`` (ranks scattered over the addresses), ``"uniform"``, ``"scan"``, or ``"phases"``:
                nine in ten visits go to a tenth of the region, which is another tenth in each of four phases.
            size: Size of a synthetic workload.
            seconds: Computing time of a synthetic workload, without waiting for memory.
            gb_s: Traffic of a synthetic workload to memory, per second of computing.
            theta: Exponent of ``"zipf"``.
            threads: Threads.
            mlp: Misses in flight of a thread: synthetic workloads and traces.
            write_share: Written back share of the traffic, 0 to 1.

        Raises:
            RequestError: There is no such pattern, or a number makes no sense.

        Example:
            >>> Workload.synthetic("scan", size="1GiB").footprint_bytes
            1073741824
        """
        if not isinstance(pattern, str) or pattern not in PATTERNS:
            message = f"there is no pattern `{pattern}`\nhint: use one of: {', '.join(PATTERNS)}"
            raise RequestError(message)
        traffic = gb_s * 1e9 * seconds
        phases = [
            [_stream(spread, part, traffic * share, write_share, mlp) for share, spread, part in streams]
            for streams in _streams_by_phase(pattern, theta)
        ]
        data = {
            "version": 1,
            "name": pattern,
            "title": f"{pattern} over one region",
            "threads": threads,
            "regions": [{"name": "data", "size_bytes": amount_in_bytes(size, 0)}],
            "phases": [
                {
                    "name": f"phase {number}",
                    "threads": threads,
                    "compute_s": seconds * threads / len(phases),
                    "streams": streams,
                }
                for number, streams in enumerate(phases, 1)
            ],
        }
        return cls.from_data(data)

    @staticmethod
    def names() -> list[str]:
        """Names of the workloads in the catalog, sorted."""
        return catalog.workload_names()

    @property
    def name(self) -> str:
        """Short name."""
        return self.data["name"]

    @property
    def footprint_bytes(self) -> int:
        """Bytes of all regions."""
        return sum(region["size_bytes"] for region in self.data["regions"])

    def __repr__(self) -> str:
        return f"<Workload {self.name}: {len(self.data['regions'])} regions>"


def _streams_by_phase(pattern: str, theta: float) -> list[list[tuple[float, object, tuple[float, float]]]]:
    """The streams of each phase of a synthetic pattern: share of all traffic, spread, and part of the region."""
    whole = (0.0, 1.0)
    if pattern == "phases":
        hot = ((start, start + 0.1) for start in (0.8, 0.2, 0.6, 0.4))
        return [[(0.9 / 4, "uniform", part), (0.1 / 4, "uniform", whole)] for part in hot]
    spreads: dict[str, object] = {"zipf": {"scattered": theta}, "uniform": "uniform", "scan": "sweep"}
    return [[(1.0, spreads[pattern], whole)]]


def _stream(
    spread: object, part: tuple[float, float], traffic: float, write_share: float, mlp: float
) -> dict[str, object]:
    """A stream over the one region of a synthetic workload, with so many bytes of traffic."""
    swept = spread == "sweep"
    read = traffic * (1.0 - write_share)
    return {
        "region": "data",
        "part": list(part),
        "spread": spread,
        "pattern": "stream" if swept else "random",
        "visits": read / (PAGE_BYTES if swept else LINE_BYTES),
        "read_bytes": read,
        "write_bytes": traffic * write_share,
        "mlp": mlp,
    }
