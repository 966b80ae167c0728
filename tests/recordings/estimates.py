"""What the estimator says of each recording in `kept`, against the truth; the table of it is `estimates.toml`.

    .venv/bin/python tests/recordings/estimates.py      rewrites the table, and that of docs/accuracy.md

The table holds what is right and what is known to be wrong. A change of the estimator changes it: the difference is
what a reviewer reads. Nothing here depends on the machine: a recording and its program are all that goes in.
"""

from __future__ import annotations

import importlib.util
import json
import tomllib
from functools import cache
from pathlib import Path
from typing import NamedTuple

import tierloom

HERE = Path(__file__).parent
KEPT = HERE / "kept"
TABLE = HERE / "estimates.toml"
PAGE = HERE.parents[1] / "docs" / "accuracy.md"
BEGIN, END = "<!-- recorded: begin -->", "<!-- recorded: end -->"
ABOUT = """\
# What the estimator says of each recording, against the truth. Written by `make estimates`, not by hand.
# tvd: the share of all accesses that is booked on the wrong object, in percent.
# total: how far the count of all accesses is off, in percent.
"""


class Estimate(NamedTuple):
    """What an analysis says against the truth, in percent, and the samples that it rests on."""

    samples: int
    tvd: float
    total: float


@cache
def bench():
    """The bench of the live accuracy; it knows which profiled object is which true one, and its promises."""
    path = HERE.parents[1] / "benches" / "sampler_accuracy.py"
    spec = importlib.util.spec_from_file_location("sampler_accuracy", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def names() -> list[str]:
    """All recordings: PROGRAM-LEVEL."""
    return sorted(folder.name for folder in KEPT.iterdir())


def of_workloads() -> list[str]:
    """Those of our own workloads, which have promises to keep."""
    ours = {*bench().EXACT, *bench().OTHERS}
    return [name for name in names() if name.rpartition("-")[0] in ours]


def analysed(folder: Path) -> tierloom.recording.Recorded:
    """The profile of a recording, with the program that lies beside it."""
    return tierloom.analyse(folder / "recording", name=folder.name, binaries=[folder])


@cache
def profile(name: str) -> dict:
    """The profile of a recording by its name."""
    return analysed(KEPT / name).profile.data


LARGE = 0.03
"""Objects with this share of the accesses are asked for their intervals."""


class Interval(NamedTuple):
    """An object's interval against the truth, both as parts of its count."""

    recording: str
    object: str
    low: float
    true: float
    high: float

    @property
    def holds(self) -> bool:
        """Whether the truth lies in it."""
        return self.low <= self.true <= self.high

    @property
    def half(self) -> float:
        """Half of its width."""
        return (self.high - self.low) / 2


def intervals(name: str) -> list[Interval]:
    """Of the large objects of a recording that are one object in its profile."""
    found, right = profile(name), truth(name)["objects"]
    counted = bench().accesses(found)
    known = {one["name"]: one.get("accesses") for one in found["objects"]}
    accesses = {one["name"]: one["reads"] + one["writes"] for one in right}
    large = [one for one in right if accesses[one["name"]] >= LARGE * sum(accesses.values())]
    all_ = []
    for one in large:
        names = list(bench().find(found, one))
        if len(names) == 1:
            (own,) = names
            low, high = (known[own][end] / known[own]["count"] for end in ("low", "high"))
            all_.append(Interval(name, one["name"], low, accesses[one["name"]] / counted[own], high))
    return all_


def truth(name: str) -> dict:
    """What the program really did."""
    return json.loads((KEPT / name / "truth.json").read_text())


def estimate(name: str) -> Estimate:
    """A recording's line of the table, as it comes out now."""
    found = profile(name)
    tvd, total = bench().compare(found, truth(name), verbose=False)
    return Estimate(found["sampling"]["samples"], round(tvd, 2), round(total, 1))


def table() -> dict[str, Estimate]:
    """The lines that are written down."""
    return {name: Estimate(**line) for name, line in tomllib.loads(TABLE.read_text()).items()}


def write(found: dict[str, Estimate]) -> None:
    """Writes the table, and the same for people."""
    line = "{} = {{ samples = {}, tvd = {:.2f}, total = {:+.1f} }}\n".format
    TABLE.write_text(ABOUT + "".join(line(name, *one) for name, one in found.items()))
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    after = rest.split(END)[1]
    PAGE.write_text(f"{before}{BEGIN}\n\n{for_people(found)}\n{END}{after}", encoding="utf-8")


def for_people(found: dict[str, Estimate]) -> str:
    """A line a program."""
    programs = sorted({name.rpartition("-")[0] for name in found})
    lines = ["| | TVD %, -O2 | -O3 | total %, -O2 | -O3 |", "|---|---|---|---|---|"]
    for program in programs:
        levels = [found[f"{program}-{level}"] for level in ("O2", "O3")]
        columns = [f"{one.tvd:.2f}" for one in levels] + [f"{one.total:+.1f}" for one in levels]
        lines.append(f"| {program.replace('_', ' ')} | {' | '.join(columns)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    write({name: estimate(name) for name in names()})
