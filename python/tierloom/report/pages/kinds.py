"""Which builder shows which kind of source: one line a kind, and tables for everything else."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tierloom.report.pages import (
    anything,
    claims,
    comparison,
    difference,
    expansion,
    language,
    machine,
    plan,
    profile,
    simulation,
    study,
)
from tierloom.report.pages.parts import Notes
from tierloom.report.pages.reading import Shelf

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tierloom.report.pages.parts import Section
    from tierloom.report.pages.reading import Source

BUILDERS: dict[str, Callable[[Source, Shelf], Section]] = {
    "machine": machine.section,
    "profile": profile.section,
    "comparison": comparison.section,
    "plan": plan.section,
    "run": plan.run_section,
    "simulation": simulation.section,
    "inference": language.inference,
    "training": language.training,
    "serving": language.serving,
    "ratios": language.ratios,
    "expansion": expansion.section,
    "claims": claims.section,
    "difference": difference.section,
    "study": study.section,
}


def sections(sources: Sequence[Source]) -> list[Section]:
    """One section a source."""
    shelf = Shelf.of(sources)
    return [section(source, shelf) for source in sources]


def section(source: Source, shelf: Shelf) -> Section:
    """A source's section; as plain tables when it lacks what its kind should have, as old or edited files may."""
    try:
        return BUILDERS.get(source.kind, anything.section)(source, shelf)
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as problem:
        note = f"It looks like a {source.kind} but is not all of one ({type(problem).__name__}: {problem})."
        return replace(anything.section(source, shelf), notes=[Notes("Shown as it is", [note])])
