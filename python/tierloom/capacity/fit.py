"""From a user's few runs to the constants of `Spill`, with the errors of points that the fit has not seen.

For given exponent, working set and sharing the model is linear in its seconds, so those are searched for and
the seconds are solved for by least squares without negative values, on relative errors. Where storage
traffic was counted it has to follow the same curve, which steadies the fit: bytes are less noisy than time.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tierloom.capacity.runs import medians
from tierloom.capacity.spill import Spill, spill_shape
from tierloom.errors import RequestError
from tierloom.extras import brought_by
from tierloom.units import bytes_text

with brought_by("capacity"):
    from scipy.optimize import nnls

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from tierloom.capacity.runs import Run

    Column = npt.NDArray[np.float64]

LINES = (-1.0, -0.75, -0.5, -0.25)
"""Exponents from a straight line down to the working set to nearly a logarithm."""

EXPONENTS = tuple(float(value) for value in np.geomspace(0.25, 8.0, 26))
SHARINGS = tuple(float(value) for value in np.linspace(0.0, 1.0, 11))
WORKING_SETS = 24
"""Steps of the search; a finer one moves predictions by far less than the runs scatter."""

FINER = tuple(float(part) for part in np.linspace(-1.0, 1.0, 9))
"""Steps of the later searches, around the best so far."""

REACHES = (1.0, 0.25)
"""How far each later search goes, of the way to the first one's next candidate."""

BEYOND = 3.0
"""Working sets are looked for up to so many times the most memory that was tried; beyond, there is none."""

LEAST = 3
"""Amounts of memory below which a curve cannot be told from a line."""

TRAFFIC_WEIGHT = 0.3
"""Weight of an error in traffic against the same relative error in time: time is what is asked for."""


@dataclass(frozen=True, kw_only=True)
class Point:
    """One memory size and number of streams: measured and by the model, and by a model that has not seen it."""

    memory_bytes: int
    streams: int
    seconds: float
    model_s: float
    unseen_s: float | None
    storage_bytes: float

    @property
    def error(self) -> float:
        """Relative error of the model."""
        return self.model_s / self.seconds - 1.0

    @property
    def unseen_error(self) -> float | None:
        """Relative error of the model that was fitted without this memory size."""
        return None if self.unseen_s is None else self.unseen_s / self.seconds - 1.0


@dataclass(frozen=True, kw_only=True)
class Fit:
    """A fitted model and how far it is from the runs; `spread` is its largest error where it had not seen."""

    spill: Spill
    points: tuple[Point, ...]
    spread: float
    scatter: float | None


def fit(runs: Sequence[Run]) -> Fit:
    """The model of some runs, and its errors by leaving out one amount of memory at a time.

    Raises:
        RequestError: There are fewer than three amounts of memory.
    """
    points = medians(runs)
    model = solve(points)
    made = tuple(_point(model, points, run) for run in points)
    unseen = [abs(point.unseen_error) for point in made if point.unseen_error is not None]
    spread = max(unseen, default=max(abs(point.error) for point in made))
    return Fit(spill=model, points=made, spread=spread, scatter=_scatter(runs))


def held_out(runs: Sequence[Run], out: Sequence[int]) -> Fit:
    """The model of the runs without some amounts of memory, and its errors on those alone.

    Raises:
        RequestError: No run has one of these amounts, or too few are left.
    """
    points = medians(runs)
    known = sorted({run.memory_bytes for run in points})
    for size in out:
        if size not in known:
            message = f"no run has {bytes_text(size)} of memory\nhint: there are {', '.join(map(bytes_text, known))}"
            raise RequestError(message)
    model = solve([run for run in points if run.memory_bytes not in out])
    made = tuple(
        _made(run, model.seconds(run.memory_bytes, run.streams), model.seconds(run.memory_bytes, run.streams))
        for run in points
        if run.memory_bytes in out
    )
    spread = max(abs(point.error) for point in made)
    return Fit(spill=model, points=made, spread=spread, scatter=_scatter(runs))


def solve(points: Sequence[Run]) -> Spill:
    """The constants that fit best; one run for each memory and number of streams.

    Raises:
        RequestError: There are fewer than three amounts of memory.
    """
    sizes = sorted({run.memory_bytes for run in points})
    if len(sizes) < LEAST:
        message = (
            f"{len(sizes)} amounts of memory are too few for a curve\n"
            f"hint: give runs with at least {LEAST}, better five, from where the job spills much to where it does not"
        )
        raise RequestError(message)
    several = len({run.streams for run in points}) > 1
    sets = [math.inf]
    if len(sizes) > LEAST:
        sets += [float(size) for size in np.geomspace(sizes[1], sizes[-1] * BEYOND, WORKING_SETS)]
    curves = [*itertools.product(EXPONENTS, sets), *itertools.product(LINES, sets[1:])]
    tried = [(*curve, sharing) for curve in curves for sharing in (SHARINGS if several else (1.0,))]
    best = _best(points, sizes[0], tried)
    for reach in REACHES:
        best = _best(points, sizes[0], _near(best, sizes, reach))
    return best


def _best(points: Sequence[Run], reference: float, tried: Sequence[tuple[float, float, float]]) -> Spill:
    """The model with the least squared error of some exponents, working sets and sharings."""
    return min((_candidate(points, reference, *each) for each in tried), key=lambda found: found[0])[1]


def _near(rough: Spill, sizes: Sequence[int], reach: float) -> list[tuple[float, float, float]]:
    """The model itself and those around it, as far as `reach` of the way to the first search's next one."""
    step = (sizes[-1] * BEYOND / sizes[1]) ** (reach / (WORKING_SETS - 1))
    sets = [rough.working_set_bytes * step**part for part in FINER]
    exponents = [rough.exponent, *(rough.exponent * 1.4 ** (reach * part) for part in FINER)]
    return [(exponent, working, rough.sharing) for exponent in exponents for working in sets]


def _candidate(
    points: Sequence[Run], reference: float, exponent: float, working: float, sharing: float
) -> tuple[float, Spill]:
    """Squared error and model for one exponent, working set and sharing."""
    streams = np.array([run.streams for run in points], dtype=float)
    per_stream = np.array([run.memory_bytes for run in points]) / streams**sharing
    shape = np.array([spill_shape(memory, reference, exponent, working) for memory in per_stream])
    several = len(set(streams)) > 1
    ones = np.ones(len(points))
    columns = [ones, streams, streams * shape] if several else [ones, streams * shape]
    solved, cost = _least(columns, np.array([run.seconds for run in points]))
    traffic = np.array([run.storage_bytes for run in points])
    if traffic.min() > 0.0:
        cost += TRAFFIC_WEIGHT * _least([streams, streams * shape], traffic, floor=0.1 * float(traffic.max()))[1]
    base, growth = (solved[0], solved[1]) if several else (0.0, solved[0] / streams[0])
    compute = base + growth
    model = Spill(
        compute_s=float(compute),
        alone=float(growth / compute) if compute > 0.0 else 1.0,
        storage_s=float(solved[-1]),
        exponent=exponent,
        sharing=sharing,
        reference_bytes=float(reference),
        working_set_bytes=working,
    )
    return cost, model


def _least(columns: Sequence[Column], right: Column, floor: float = 0.0) -> tuple[Column, float]:
    """Non-negative least squares of relative errors; `floor` keeps small values from ruling."""
    weight = 1.0 / np.maximum(right, floor)
    found, norm = nnls(np.stack(columns, axis=1) * weight[:, None], right * weight)
    return found, float(norm) ** 2


def _point(model: Spill, points: Sequence[Run], run: Run) -> Point:
    """One point; what lies outside the others' range is not predicted: that would test extrapolation."""
    others = [other for other in points if other.memory_bytes != run.memory_bytes]
    sizes = {other.memory_bytes for other in others}
    inside = len(sizes) >= LEAST and min(sizes) < run.memory_bytes < max(sizes)
    unseen = solve(others).seconds(run.memory_bytes, run.streams) if inside else None
    return _made(run, model.seconds(run.memory_bytes, run.streams), unseen)


def _made(run: Run, model_s: float, unseen_s: float | None) -> Point:
    return Point(
        memory_bytes=run.memory_bytes,
        streams=run.streams,
        seconds=run.seconds,
        model_s=model_s,
        unseen_s=unseen_s,
        storage_bytes=run.storage_bytes,
    )


def _scatter(runs: Sequence[Run]) -> float | None:
    """Largest distance of a repeat from the median of its point, a share; none where nothing was repeated."""
    if len(runs) == len(medians(runs)):
        return None
    middle = {(run.memory_bytes, run.streams): run.seconds for run in medians(runs)}
    return max(abs(run.seconds / middle[run.memory_bytes, run.streams] - 1.0) for run in runs)
