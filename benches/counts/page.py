"""The judge's results on the page about accuracy."""

import re
import statistics
from pathlib import Path

from .table import Line, is_told, read

RESULTS = Path(__file__).parent / "results"
SETS = {"random-gate": "random programs, unseen seeds", "real": "real programs"}
MARKS = re.compile(r"(<!-- field: begin -->\n).*?(\n<!-- field: end -->)", re.DOTALL)


def written(page: str) -> str:
    """The page with today's results in their place."""
    sets = {title: read(RESULTS / f"{name}.csv") for name, title in SETS.items()}
    parts = [summary(sets), programs(sets[SETS["real"]])]
    return MARKS.sub(lambda mark: f"{mark[1]}\n" + "\n\n".join(parts) + f"\n{mark[2]}", page)


def summary(sets: dict[str, list[Line]]) -> str:
    """A line a set."""
    head = ["", "programs", "TVD %, median", "95th percentile", "totals within 10 %", "within 30 %"]
    head += ["truth in the interval", "its half, median", "told of rough counts"]
    rows = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for title, lines in sets.items():
        tvds = sorted(line.tvd for line in lines)
        late = tvds[min(round(0.95 * len(tvds)), len(tvds) - 1)]
        near = [sum(abs(line.total) <= bound for line in lines) for bound in (10, 30)]
        inside, intervals = sum(line.inside for line in lines), sum(line.intervals for line in lines)
        half = statistics.median(line.half for line in lines if line.half is not None)
        counts = f"{statistics.median(tvds):.1f} | {late:.1f} | {near[0]} | {near[1]}"
        held = f"{100 * inside / intervals:.0f} % of {intervals} objects | {half:.0f} %"
        rows.append(f"| {title} | {len(lines)} | {counts} | {held} | {sum(map(is_told, lines))} |")
    return "\n".join(rows)


def programs(lines: list[Line]) -> str:
    """A line a program."""
    rows = ["| program | TVD % | total % | samples | |", "|---|---|---|---|---|"]
    rows += [
        f"| {line.program} | {line.tvd:.1f} | {line.total:+.0f} | {line.samples} | {line.about} |" for line in lines
    ]
    return "\n".join(rows)
