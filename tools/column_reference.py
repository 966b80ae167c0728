"""The reference of all tables of the API: what each row says, from the columns that nouns and answers declare.

usage: column_reference.py

Writes the part of ``docs/python.md`` between two marks. A test holds it to the declarations.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from tierloom.columns import Column
from tierloom.nouns.machine import PATHS
from tierloom.nouns.plan import RULES
from tierloom.nouns.profile_objects import OBJECTS
from tierloom.offload.columns import PLACES, STEPS
from tierloom.policy_search import TIERS, policy_columns

PAGE = Path(__file__).resolve().parents[1] / "docs" / "python.md"
BEGIN, END = "<!-- columns: begin -->", "<!-- columns: end -->"

TABLES: dict[str, tuple[str, Sequence[Column]]] = {
    "tierloom.machine": ("a path from a socket to a memory", PATHS),
    "tierloom.profile": ("an object", OBJECTS),
    "tierloom.plan": ("a policy", policy_columns("fast memory")),
    "tierloom.plan(…).plan": ("a rule", RULES),
    "tierloom.predict": ("a memory under one placement", TIERS),
    "tierloom.offload.infer": ("a place", PLACES),
    "tierloom.offload.train": ("a policy", STEPS),
}
"""By call, what a row is of, and its columns."""

OTHERS = (
    "| `tierloom.simulate(…)` | a moment | `time_s`, `fast_share`; of each memory, behind its name, `used_pages`, "
    "`gb_s` and `latency_ns`; the kernel's counters so far |",
    "| `tierloom.sweep(…)` | a point of the study | its axes, what came out, and what became of it: its Parquet file |",
)
"""What has the columns of its memories, or of its study."""


def main() -> None:
    """Writes the tables."""
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


def written(page: str) -> str:
    """The page with its table as the declarations have it."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return before + "\n".join([BEGIN, *lines(), END]) + after


def lines() -> Iterator[str]:
    """A line a call."""
    yield from ("| call | a row is | columns |", "|---|---|---|")
    for call, (row, columns) in TABLES.items():
        yield f"| `{call}(…)` | {row} | {'; '.join(map(told, columns))} |"
    yield from OTHERS


def told(column: Column) -> str:
    """A column's keys, and what they are where a key does not say it."""
    keys = " to ".join(f"`{key}`" for key in (column.key, column.to) if key)
    said = column.about or column.heading
    plain = column.key.removesuffix("_bytes").removesuffix("_s").removesuffix("_ns").replace("_", " ")
    return keys if said == plain else f"{keys}: {said}"


if __name__ == "__main__":
    main()
