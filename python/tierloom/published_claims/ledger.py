"""The ledger: what was published, figure by figure, and how ours is computed. Nouns.

One file a study in ``catalog/claims``: its sections with what of each works here, settings that its runs had (inputs of
ours), its claims, and the numbers that are no claims. A figure is written once, as the paper prints it; value, unit and
accepted range follow (:mod:`tierloom.published_claims.printed`). How ours is computed is a name (``how``) with
parameters (``with``), and what computes it is never handed the published value.

``predictions.txt`` beside the files lists what was to be predicted before it was computed. A claim of the list that
has left the ledger since counts as missed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from importlib import resources
from typing import Any, Literal, cast, get_args

from tierloom import catalog
from tierloom.errors import RequestError
from tierloom.published_claims.printed import Ends, Figure, figure, read_off

Kind = Literal["input", "prediction", "ordering", "arithmetic"]
"""Our models are given it, or fitted to it; they predict it; it holds or does not; it follows from sizes alone."""

Cause = Literal["contradiction", "not published", "model"]
"""Whose a miss is. Another statement or figure of the same study excludes the claim, whatever the model; it hangs on
something of the set-up that the study does not give; or our model lacks a mechanism, or has it wrong."""

Value = float | bool | None

IN_WORDS = "stated in words"
LEFT = "It was on the list of predictions and has left the ledger since."


@dataclass(frozen=True, kw_only=True)
class Spot:
    """Where a claim stands in a picture of its figure; `over` is what its x counts or names, where that is known."""

    figure: str
    series: str
    x: str
    over: str = ""


@dataclass(frozen=True, kw_only=True)
class Claim:
    """One published figure or ordering that ours is held against.

    Attributes:
        id: Study and name in it; what ``--only`` matches.
        study: Id of its study.
        section: Id of the section that it stands in.
        place: Section, table and cell, or figure and bar.
        what: What was published, in one sentence of ours.
        kind: What it is to our models.
        published: The figure; for an ordering, whether it holds; none where it left the ledger.
        read_off: Where a figure comes from that the text does not print.
        how: Name of what computes ours; none where no model of ours speaks of it.
        given: Parameters of the computation.
        withdrawn: It was on the list of predictions, and its answer became known to a model since: it is missed.
        less_one: The computation gives a ratio where the paper prints the change.
        why: Mechanism of a miss, or why there is no model.
        cause: Whose a miss is; ours, unless it is known to be another's.
        spot: Where it stands in a picture.
    """

    id: str
    study: str
    section: str
    place: str
    what: str
    kind: Kind
    published: Figure | bool | None
    read_off: str = ""
    how: str | None
    given: Mapping[str, Any]
    withdrawn: bool = False
    less_one: bool = False
    why: str = ""
    cause: Cause = "model"
    spot: Spot | None = None

    @property
    def value(self) -> Value:
        """The published value."""
        return self.published.value if isinstance(self.published, Figure) else self.published

    @property
    def unit(self) -> str:
        """Unit of the value; ``of 1`` for a share, ``x`` for a ratio."""
        return self.published.unit if isinstance(self.published, Figure) else ""

    @property
    def accepted(self) -> Ends | None:
        """Lowest and highest accepted value; none for what holds or does not."""
        return self.published.accepted if isinstance(self.published, Figure) else None


@dataclass(frozen=True, kw_only=True)
class Section:
    """A section of a study, and what of it works here.

    Attributes:
        state: Some of input, predicted, simulated, run (on a real machine or kernel), or nothing.
        how: By what, in one sentence.
    """

    id: str
    title: str
    state: str
    how: str


@dataclass(frozen=True, kw_only=True)
class NotClaims:
    """Numbers of a section that claim nothing of ours."""

    section: str
    printed: tuple[str, ...]
    because: str


@dataclass(frozen=True, kw_only=True)
class Study:
    """A source document with everything of it that is in the ledger."""

    id: str
    title: str
    source: str
    sections: Sequence[Section]
    claims: Sequence[Claim]
    not_claims: Sequence[NotClaims]
    settings: Mapping[str, Any] = field(default_factory=dict)


@cache
def studies() -> tuple[Study, ...]:
    """All studies, by id."""
    return tuple(_study(catalog.catalog_table("claims", name)) for name in catalog.catalog_names("claims"))


@cache
def promised() -> tuple[str, ...]:
    """Ids of the predictions and orderings that were listed before they were computed."""
    text = (resources.files("tierloom") / "catalog" / "claims" / "predictions.txt").read_text(encoding="utf-8")
    return tuple(line for line in text.splitlines() if line and not line.startswith("#"))


def claims(only: Sequence[str] = ()) -> list[Claim]:
    """Claims whose id, or the start of whose id, matches one of the patterns; all without patterns.

    Raises:
        RequestError: Nothing matches a pattern.
    """
    every = [claim for study in studies() for claim in study.claims]
    for pattern in only:
        if not any(_matches(claim, pattern) for claim in every):
            known = ", ".join(study.id for study in studies())
            message = (
                f"--only {pattern}: no claim is called so\nhint: claims begin with {known}; `*` stands for anything"
            )
            raise RequestError(message)
    return [claim for claim in every if not only or any(_matches(claim, pattern) for pattern in only)]


def settings(study: str) -> Mapping[str, Any]:
    """What the runs of a study were given; inputs of ours."""
    return next(each.settings for each in studies() if each.id == study)


def _matches(claim: Claim, pattern: str) -> bool:
    """`liu24.table3` names all claims below it; `liu24.fig1` does not name `liu24.fig17`."""
    return fnmatchcase(claim.id, pattern) or fnmatchcase(claim.id, f"{pattern}.*")


def _study(data: dict[str, Any]) -> Study:
    name = data["id"]
    rows = [row for entry in data["claims"] for row in _rows(name, entry)]
    gone = [_gone(name, each) for each in promised() if each.startswith(f"{name}.")]
    here = {row.id for row in rows}
    return Study(
        id=name,
        title=data["title"],
        source=data["source"],
        sections=[Section(id=each, **told) for each, told in data["sections"].items()],
        claims=[*rows, *(claim for claim in gone if claim.id not in here)],
        not_claims=[NotClaims(**{**each, "printed": tuple(each["printed"])}) for each in data.get("not_claims", [])],
        settings=data.get("settings", {}),
    )


def _gone(study: str, name: str) -> Claim:
    blank: dict[str, Any] = {"section": "", "place": "", "published": None, "how": None, "given": {}, "withdrawn": True}
    return Claim(id=name, study=study, what=LEFT, kind="prediction", why=LEFT, **blank)


def _rows(study: str, entry: dict[str, Any]) -> Iterator[Claim]:
    """A claim of the file, or one for each of its points."""
    if "points" not in entry:
        yield _claim(study, entry, entry["id"], None, entry.get("printed", entry.get("value")))
        return
    for x, told in _points(entry["points"]).items():
        yield _claim(study, entry, f"{entry['id']}.{x}", x, told)


def _points(points: Mapping[str, Any]) -> Mapping[str, Any]:
    """Points as they stand, or those of a series of `pmem stream --group`, which the catalog holds."""
    if not isinstance(points.get("series"), str):
        return points
    return {threads: _series()[points["series"]][threads] for threads in map(str, points["threads"])}


@cache
def _series() -> Mapping[str, Mapping[str, float]]:
    """Triad bandwidth by threads, by group and name of the series."""
    groups = catalog.catalog_table("pmem", "streamer")["groups"]
    return {f"{group['name']} {each['name']}": each["triad_gb_s"] for group in groups for each in group["series"]}


def _claim(study: str, entry: dict[str, Any], name: str, x: str | None, told: str | list[str] | float | None) -> Claim:
    parameters = dict(entry.get("with", {}))
    if x is not None and "over" in entry:
        parameters[entry["over"]] = int(x) if x.isdecimal() else x
    return Claim(
        id=f"{study}.{name}",
        study=study,
        section=entry["section"],
        place=entry["place"].replace("{x}", x or ""),
        what=entry["what"].replace("{x}", x or ""),
        kind=_one_of(Kind, entry.get("kind", "prediction")),
        published=_published(entry, told),
        read_off=entry.get("read_off", entry.get("source", "" if told is not None else IN_WORDS)),
        how=entry.get("how"),
        given=parameters,
        withdrawn=entry.get("withdrawn", False),
        less_one=entry.get("less_one", False),
        why=_of_point(entry.get("why", ""), x),
        cause=_one_of(Cause, _of_point(entry.get("cause", ""), x) or "model"),
        spot=_spot(entry.get("plot"), x, entry.get("over", "")),
    )


def _published(entry: Mapping[str, Any], told: str | list[str] | float | None) -> Figure | bool:
    if told is None:
        return bool(entry.get("holds", True))
    how: dict[str, Any] = {key: entry[key] for key in ("unit", "bound", "change") if key in entry}
    if isinstance(told, str | list):
        return figure(told, **how)
    return read_off(float(told), **{"unit": "", **how})


def _of_point(words: str | Mapping[str, str], x: str | None) -> str:
    """The same for all points, or each its own."""
    return words if isinstance(words, str) else words.get(x or "", "")


def _one_of(words: Any, word: str) -> Any:  # noqa: ANN401 (a literal type, and one of its words)
    if word not in get_args(words):
        message = f"{word!r}: not one of {', '.join(get_args(words))}"
        raise ValueError(message)
    return cast("Any", word)


def _spot(plot: Mapping[str, str] | None, x: str | None, over: str) -> Spot | None:
    if plot is None:
        return None
    return Spot(figure=plot["figure"], series=plot["series"], x=x if x is not None else plot["x"], over=over)
