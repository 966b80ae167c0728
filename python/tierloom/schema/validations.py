"""Shapes of validations: predicted beside measured times."""

from __future__ import annotations

from typing import TypedDict


class ValidationRowDoc(TypedDict):
    """One program with one number of threads under one placement; errors are predicted over measured, less 1.

    ``told`` is the number of threads that the environment told the program, None where it was left alone; ``threads``
    is what is predicted. ``neighbours_gb_s`` is what others read of the near memory meanwhile. ``placement`` is the
    name of a policy. ``ablated`` is the object that was always in the cache, None where none was. ``repeat`` is how
    far one run is from the median of the others, None of a single run. ``elsewhere`` is the largest share of pages that
    were not where the placement wants them, None where that is not seen; ``notes`` are warnings of placed runs.
    """

    command: list[str]
    told: int | None
    threads: int
    profiled_threads: int
    neighbours_gb_s: float
    placement: str
    ablated: str | None
    measured_s: list[float]
    repeat: float | None
    others: float | None
    elsewhere: float | None
    notes: list[str]
    predicted_s: float
    low_s: float
    high_s: float
    error: float
    inside: bool
    modelled_s: float
    residual: float


class ValidationFailureDoc(TypedDict):
    """A program that could not be validated, and why."""

    command: list[str]
    why: str


class ValidationDoc(TypedDict):
    """Every row, and the shares of rows that are as good as one asks."""

    machine: str
    runs: int
    rows: list[ValidationRowDoc]
    failures: list[ValidationFailureDoc]
    summary: dict[str, float | None]
