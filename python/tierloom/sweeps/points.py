"""From a study to its points: every combination, a Latin hypercube, or a search that learns as it goes.

Points come in generations. A grid and a hypercube are one generation; a search asks for the next one when
it has seen the one before. What is asked follows from the study and its results alone, never from the
number of workers or their speed, so a study that is run again asks for the same points.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

from tierloom.errors import MissingPackageError, StudyError
from tierloom.extras import brought_by
from tierloom.sweeps.axes import Choice, Span

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from tierloom.sweeps.axes import Value
    from tierloom.sweeps.rows import Row
    from tierloom.sweeps.studies import Study

Point = dict[str, "Value"]


def count(study: Study) -> int:
    """How many points a study has."""
    if study.sample.method != "grid":
        return study.sample.points
    return math.prod(len(axis.grid()) for axis in study.axes.values())


def generations(study: Study, known: Callable[[Point], Row | None]) -> Iterator[Iterable[Point]]:
    """The points of a study; `known` is asked for results only after their generation was computed."""
    if study.sample.method == "grid":
        yield grid(study)
    elif study.sample.method == "latin-hypercube":
        yield hypercube(study)
    else:
        yield from search(study, known)


def grid(study: Study) -> Iterator[Point]:
    """All combinations, the last axis fastest."""
    for values in itertools.product(*(axis.grid() for axis in study.axes.values())):
        yield dict(zip(study.axes, values, strict=True))


def hypercube(study: Study) -> Iterator[Point]:
    """A Latin hypercube: every axis is cut into as many slices as there are points, and each slice is met once."""
    import numpy as np

    with brought_by("sweep"):
        from scipy.stats import qmc

    sampler = qmc.LatinHypercube(d=len(study.axes), rng=np.random.default_rng(study.sample.seed))
    for shares in sampler.random(study.sample.points):
        yield {name: axis.at(float(share)) for (name, axis), share in zip(study.axes.items(), shares, strict=True)}


def search(study: Study, known: Callable[[Point], Row | None]) -> Iterator[list[Point]]:
    """Optuna's tree-structured Parzen estimator, asked for a generation at a time.

    Raises:
        MissingPackageError: Optuna is not installed.
        StudyError: Results have no such column.
    """
    optuna = _optuna()
    sample = study.sample
    sampler = _sampler(optuna, sample.seed)
    memory = optuna.create_study(directions=list(sample.objective.values()), sampler=sampler)
    distributions = {name: _distribution(optuna, axis) for name, axis in study.axes.items()}
    left = sample.points
    while left > 0:
        trials = [memory.ask(distributions) for _ in range(min(sample.generation, left))]
        left -= len(trials)
        points = [_point(study, trial.params) for trial in trials]
        yield points
        for trial, point in zip(trials, points, strict=True):
            values = _values(known(point), sample.objective)
            state = optuna.trial.TrialState.COMPLETE if values else optuna.trial.TrialState.FAIL
            memory.tell(trial, values, state=state)


def _optuna() -> Any:  # noqa: ANN401 (a module)
    try:
        import optuna
    except ImportError as problem:
        message = "a search needs Optuna\nhint: pip install '.[sweep]'"
        raise MissingPackageError(message) from problem
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna


def _sampler(optuna: Any, seed: int) -> Any:  # noqa: ANN401
    import warnings

    with warnings.catch_warnings():  # `constant_liar` keeps a generation's points apart; it is marked experimental
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        return optuna.samplers.TPESampler(seed=seed, constant_liar=True)


def _distribution(optuna: Any, axis: Choice | Span) -> Any:  # noqa: ANN401
    if isinstance(axis, Choice):
        return optuna.distributions.CategoricalDistribution(axis.values)
    kind = optuna.distributions.IntDistribution if axis.whole else optuna.distributions.FloatDistribution
    return kind(axis.low, axis.high, log=axis.log)


def _point(study: Study, asked: Mapping[str, Any]) -> Point:
    point = {}
    for name, axis in study.axes.items():
        point[name] = axis.value(asked[name]) if isinstance(axis, Span) else asked[name]
    return point


def _values(row: Row | None, objective: Mapping[str, str]) -> list[float] | None:
    if row is None:
        return None
    values = []
    for column in objective:
        value = row.get(column)
        if isinstance(value, bool) or not isinstance(value, int | float):
            numbers = [key for key, cell in row.items() if isinstance(cell, int | float)]
            message = f"sample.objective: results have no number `{column}`\nhint: use one of: {', '.join(numbers)}"
            raise StudyError(message)
        values.append(float(value))
    return values
