"""One HTML page that holds everything a plan has to say: no scripts, no other files, no network."""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING

from jinja2 import Environment, StrictUndefined

from tierloom.quantities import bytes_text, percent_text, seconds_text
from tierloom.report import pictures, plans, profiles

if TYPE_CHECKING:
    from tierloom.planning import Comparison

TEMPLATE = "plan.html.jinja"


def render(answer: Comparison) -> str:
    """The report of a plan as one self-contained HTML page; the same answer gives the same bytes."""
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters.update(bytes=bytes_text, seconds=seconds_text, percent=percent_text, action=plans.action_text)
    text = (resources.files("tierloom") / "report" / TEMPLATE).read_text(encoding="utf-8")
    chosen = answer.chosen
    return environment.from_string(text).render(
        data=answer.data,
        machine=answer.machine.data,
        profile=answer.profile.data,
        footprint=answer.profile.footprint_bytes,
        chosen=chosen,
        prediction=chosen["outcome"]["Ok"],
        policies=plans.ordered(answer),
        placed=plans.placed(answer),
        bound=plans.bound_text,
        reason=plans.reason_text,
        place=profiles.place,
        colours=dict(zip((memory["name"] for memory in answer.machine.data["memories"]), pictures.LINES, strict=False)),
        picture=pictures.svg(pictures.frontier(answer)),
    )
