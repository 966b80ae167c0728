"""The shape of what ``reproduce --json`` prints."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from tierloom.published_claims.ledger import Cause, Kind
    from tierloom.published_claims.runs import Verdict


class SpotDoc(TypedDict):
    """A point of a published figure: its series there, and where along; `over` says what that counts or names."""

    figure: str
    series: str
    x: str
    over: str


class ClaimDoc(TypedDict):
    """A published claim and ours; a share is of 1, and what holds or does not is true or false."""

    id: str
    study: str
    section: str
    place: str
    """Section, table and cell, or figure and bar."""
    what: str
    kind: Kind
    printed: str | list[str] | None
    """The figure as the paper prints it, both ends of a range; null for an ordering, and for what is read off."""
    read_off: str | None
    """Where a figure comes from that the text does not print."""
    unit: str
    published: float | bool | None
    ours: float | bool | None
    band: list[float | None] | None
    """Lowest and highest accepted value, null where there is no end; null for what holds or does not."""
    verdict: Verdict
    cause: Cause | None
    """Whose a miss is; null for what is not missed."""
    why: str
    """Mechanism of a miss, or why there is no model; empty in band."""
    spot: SpotDoc | None
    """Where it stands in the picture of a published figure."""


class TallyDoc(TypedDict):
    """Verdicts of one kind of claim."""

    in_band: int
    missed: int
    not_modelled: int


class ClaimsDoc(TypedDict):
    """What ``reproduce --json`` prints."""

    tally: dict[str, TallyDoc]
    """By kind of claim."""
    claims: list[ClaimDoc]
