"""Which builder shows which kind of source: one line a kind, and tables for everything else."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tierloom.readers import MALFORMED
from tierloom.report.pages import (
    capacity,
    claims,
    comparison,
    difference,
    expansion,
    language_models,
    machine,
    plan,
    profile,
    simulation,
    sweep,
    unknown_documents,
    validation,
)
from tierloom.report.pages.parts import Notes
from tierloom.report.pages.sources import Shelf

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tierloom.report.pages.parts import Section
    from tierloom.report.pages.sources import Source

BUILDERS: dict[str, Callable[[Source, Shelf], Section]] = {
    "machine": machine.section,
    "profile": profile.section,
    "comparison": comparison.section,
    "plan": plan.section,
    "run": plan.run_section,
    "simulation": simulation.section,
    "inference": language_models.inference,
    "training": language_models.training,
    "serving": language_models.serving,
    "ratios": language_models.ratios,
    "expansion": expansion.section,
    "claims": claims.section,
    "difference": difference.section,
    "study": sweep.section,
    "validation": validation.section,
    "spill-fit": capacity.fitted,
    "purchases": capacity.purchases,
}


AS_IT_IS = "Shown as it is"
"""Title of the note of a source that its builder could not show."""


def sections(sources: Sequence[Source]) -> list[Section]:
    """One section a source."""
    shelf = Shelf.of(sources)
    return [section(source, shelf) for source in sources]


def section(source: Source, shelf: Shelf) -> Section:
    """A source's section; as plain tables when it lacks what its kind should have, as old or edited files may.

    What a reader checked (a machine, a profile, a plan) lacks nothing: an error there is a fault of ours, and is not
    taken for the file's.
    """
    build = builder(source)
    if source.noun is not None or build is unknown_documents.section:
        return build(source, shelf)
    try:
        return build(source, shelf)
    except MALFORMED as problem:
        note = f"It looks like a {source.kind} but is not all of one ({type(problem).__name__}: {problem})."
        return replace(unknown_documents.section(source, shelf), notes=[Notes(AS_IT_IS, [note])])


def builder(source: Source) -> Callable[[Source, Shelf], Section]:
    """What shows a source of this kind."""
    return BUILDERS.get(source.kind, unknown_documents.section)


def doubts(made: Sequence[Section]) -> list[str]:
    """Of each section that is shown as it is for want of something: its title, and what is wrong."""
    return [f"{each.title}: {' '.join(note.lines)}" for each in made for note in each.notes if note.title == AS_IT_IS]
