"""The judge's table: a line a program, and what the lines come to."""

import csv
import statistics
from dataclasses import astuple, dataclass, fields
from pathlib import Path

from .judge import Verdict, apart, spread
from .program import Program


@dataclass(frozen=True)
class Line:
    """One program, over all its recordings; percent."""

    program: str
    tvd: float
    tvd_worst: float
    total: float
    total_worst: float
    ratio: float
    spread: float | None
    """Of several recordings; one has none."""
    samples: int
    intervals: int
    """Objects with at least 3 % of the bytes whose counts have an interval, in all recordings."""
    inside: int
    """Of these, with the truth in it."""
    half: float | None
    """Half of the interval, percent of the count; the median of these."""
    apart: int | None
    """Objects of which the intervals of several recordings have no value in common."""
    warned: str
    about: str

    @classmethod
    def of(cls, program: Program, verdicts: list[Verdict]) -> "Line":
        """From the verdicts of its recordings."""
        tvds, totals = [one.tvd for one in verdicts], [one.total for one in verdicts]
        figures = statistics.median(tvds), max(tvds), statistics.median(totals), max(totals, key=abs)
        tvd, tvd_worst, total, total_worst = (round(one, 2) for one in figures)
        ratio = round(statistics.median(one.ratio for one in verdicts), 2)
        several = len(verdicts) > 1
        samples = round(statistics.median(one.samples for one in verdicts))
        large = [one for verdict in verdicts for one in verdict.large]
        halves = [100 * (one.half or 0.0) / one.found for one in large if one.found]
        warned = " ".join(sorted({kind for one in verdicts for kind in one.warnings}))
        named = {"program": program.name, "warned": warned, "about": program.about}
        return cls(
            tvd=tvd,
            tvd_worst=tvd_worst,
            total=total,
            total_worst=total_worst,
            ratio=ratio,
            spread=round(spread(verdicts), 2) if several else None,
            samples=samples,
            intervals=len(large),
            inside=sum(one.is_inside for one in large),
            half=round(statistics.median(halves), 1) if halves else None,
            apart=apart(verdicts) if several else None,
            **named,
        )


HEAD = [field.name for field in fields(Line)]


def write(path: Path, lines: list[Line]) -> None:
    """As CSV, by name."""
    with path.open("w", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([HEAD, *sorted(map(astuple, lines))])


def read(path: Path) -> list[Line]:
    """What was written."""
    with path.open(encoding="utf-8") as file:
        return [
            Line(
                program=row["program"],
                tvd=float(row["tvd"]),
                tvd_worst=float(row["tvd_worst"]),
                total=float(row["total"]),
                total_worst=float(row["total_worst"]),
                ratio=float(row["ratio"]),
                spread=float(row["spread"]) if row["spread"] else None,
                samples=int(row["samples"]),
                intervals=int(row["intervals"]),
                inside=int(row["inside"]),
                half=float(row["half"]) if row["half"] else None,
                apart=int(row["apart"]) if row["apart"] else None,
                warned=row["warned"],
                about=row["about"],
            )
            for row in csv.DictReader(file)
        ]


ROUGH = {"counts_rough", "uncounted", "few_samples", "objects_unseen"}
"""Kinds of warnings; `uncounted` is of tables from before every object had an interval."""


def is_told(line: Line) -> bool:
    """Whether a profile says that its counts are rough."""
    return bool(ROUGH & set(line.warned.split()))


def within(values: list[float], bound: float) -> str:
    """How many of some values are no larger than a bound."""
    return f"{sum(abs(value) <= bound for value in values)} of {len(values)} within {bound:g} %"


def summary(lines: list[Line]) -> str:
    """What is asked of all programs together."""
    tvds, totals = sorted(line.tvd for line in lines), [line.total for line in lines]
    late = tvds[min(round(0.95 * len(tvds)), len(tvds) - 1)]
    uncertain = sum(is_told(line) for line in lines)
    inside, intervals = (sum(values) for values in zip(*((line.inside, line.intervals) for line in lines), strict=True))
    return "\n".join(
        [
            f"TVD: median {statistics.median(tvds):.2f} %, 95th percentile {late:.2f} %",
            f"totals: {within(totals, 10)}, {within(totals, 30)}",
            f"reads by writes: {within([line.ratio for line in lines], 10)}",
            f"spread of recordings: {within([line.spread for line in lines if line.spread is not None], 10)}",
            f"truth in the interval: {inside} of {intervals} objects",
            f"warned of rough counts: {uncertain} of {len(lines)}",
        ]
    )
