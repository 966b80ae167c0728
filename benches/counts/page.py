"""The judge's results on the page about accuracy."""

import csv
import re
import statistics
from pathlib import Path

from .table import Line, read

RESULTS = Path(__file__).parent / "results"
ESTIMATED = {
    "field": ("by samples", "of the field"),
    "random": ("by samples", "random"),
    "random-bursts": ("`--bursts 2%`, unfinished", "random"),
    "random-windows": ("`--windows`, unfinished", "random"),
    "unseen": ("by samples", "random, unseen"),
    "unseen-windows": ("`--windows`, unfinished", "random, unseen"),
}
"""Tables of results: what counted, and which programs."""
MARKS = re.compile(r"(<!-- (?P<what>sources|field): begin -->\n).*?(\n<!-- (?P=what): end -->)", re.DOTALL)

Counted = dict[str, dict[str, str]]
"""By program: a line of `python -m benches.counts counted`."""


def written(page: str) -> str:
    """The page with today's results in their place."""
    with (RESULTS / "counted.csv").open(encoding="utf-8") as file:
        counted = {row["program"]: row for row in csv.DictReader(file)}
    parts = {"sources": sources(counted), "field": programs(read(RESULTS / "field.csv"), counted)}
    return MARKS.sub(lambda mark: f"{mark[1]}\n{parts[mark['what']]}\n{mark[3]}", page)


def sources(counted: Counted) -> str:
    """A line a source of counts and set of programs."""
    head = ["counts", "programs", "TVD %, median", "TVD within 1 %", "totals within 1 %", "within 30 %"]
    head += ["truth in the interval", "half of it, median"]
    rows = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for name, (source, title) in ESTIMATED.items():
        lines = read(RESULTS / f"{name}.csv")
        inside, intervals = sum(line.inside for line in lines), sum(line.intervals for line in lines)
        half = statistics.median(line.half for line in lines if line.half is not None)
        near = _near([line.tvd for line in lines], [line.total for line in lines])
        rows.append(f"| {source} | {title} | {near} | {_held(inside, intervals)} | {half:.0f} % |")
    tvds, totals = ([float(row[column]) for row in counted.values()] for column in ("tvd", "total"))
    inside, intervals = (sum(int(row[column]) for row in counted.values()) for column in ("inside", "intervals"))
    rows.append(f"| `--count` | of the field | {_near(tvds, totals)} | {_held(inside, intervals)} | |")
    return "\n".join(rows)


def _near(tvds: list[float], totals: list[float]) -> str:
    within = [sum(abs(value) <= bound for value in values) for values, bound in ((tvds, 1), (totals, 1), (totals, 30))]
    return f"{statistics.median(tvds):.1f} | " + " | ".join(f"{number} of {len(tvds)}" for number in within)


def _held(inside: int, intervals: int) -> str:
    return f"{inside} of {intervals} ({100 * inside / intervals:.0f} %)"


def programs(lines: list[Line], counted: Counted) -> str:
    """A line a program, by samples and counted."""
    head = ["program", "samples", "TVD %", "total %", "totals apart %", "intervals apart"]
    head += ["`--count`: samples", "TVD %", "wrong object %", "total %", "not sampled %"]
    rows = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for line in lines:
        apart = f"{line.spread:.0f} | {line.apart}" if line.spread is not None else " | "
        exact = _exact(counted[line.program]) if line.program in counted else " | | | | "
        rows.append(f"| {line.about} | {line.samples} | {line.tvd:.1f} | {line.total:+.0f} | {apart} | {exact} |")
    others = [row for name, row in counted.items() if name not in {line.program for line in lines}]
    rows += [f"| {row['about']} | | | | | | {_exact(row)} |" for row in others]
    return "\n".join(rows)


def _exact(row: dict[str, str]) -> str:
    samples = f"{float(row['samples']):.0f}"
    return " | ".join([samples, *(f"{float(row[name]):.2f}" for name in ("tvd", "wrong", "total", "not_sampled"))])
