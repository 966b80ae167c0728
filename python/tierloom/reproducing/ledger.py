"""The ledger: what was published, and how close a prediction has to come. Nouns.

One file a source document in ``catalog/claims``: its items (figures, tables, numbered observations),
settings that its runs had (inputs of ours), and its claims. A published figure is written there, or in the
case or series of the catalog that the claim names, and nowhere else; how ours is computed is a name (``how``)
with parameters (``with``), and what computes it is never handed the published value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from typing import Any, Literal, cast, get_args

from tierloom import lookup
from tierloom.errors import RequestError

Kind = Literal["input", "prediction"]
Cause = Literal["contradiction", "not published", "model"]
"""Whose a miss is. Another statement or figure of the same study excludes the claim, whatever the model; it hangs on
something of the set-up that the study does not give; or our model lacks a mechanism, or has it wrong."""

Value = float | bool | None


@dataclass(frozen=True, kw_only=True)
class Band:
    """How far from a published value ours may be: one of the forms below, or absolute ends.

    Attributes:
        exact: Not at all.
        share: A share of it.
        points: So much, in its unit.
        orders: So many powers of ten.
        fewest: Counts below this are alike, whatever their orders.
        low: Lowest value.
        high: Highest value.
    """

    exact: bool = False
    share: float | None = None
    points: float | None = None
    orders: float | None = None
    fewest: float = 0.0
    low: float | None = None
    high: float | None = None

    def around(self, published: float) -> tuple[float | None, float | None]:
        """Lowest and highest accepted value; none where there is no end."""
        if self.exact:
            return published, published
        if self.share is not None:
            reach = abs(published) * self.share
            return published - reach, published + reach
        if self.points is not None:
            return published - self.points, published + self.points
        if self.orders is not None:
            return self._by_orders(published, 10.0**self.orders)
        return self.low, self.high

    def _by_orders(self, published: float, factor: float) -> tuple[float, float]:
        least = published / factor
        return (least if least > self.fewest else 0.0), max(published, self.fewest) * factor


@dataclass(frozen=True, kw_only=True)
class Spot:
    """Where a claim stands in a picture of its figure; `over` is what its x counts or names, where that is known."""

    figure: str
    series: str
    x: str
    over: str = ""


@dataclass(frozen=True, kw_only=True)
class Claim:
    """One published sentence, point or cell that ours is held against.

    Attributes:
        id: Document and place in it; what ``--only`` matches.
        document: Id of its document.
        item: Id of the figure, table or observation that it belongs to.
        what: What was published, in one sentence.
        kind: Whether our models were given it (or were fitted to it), or predict it.
        published: The published value; none where it is not in a source at hand.
        unit: Unit of the value.
        band: How far ours may be from it; none for what holds or does not.
        because: Where the band comes from.
        how: Name of what computes ours; none where no model of ours speaks of it.
        given: Parameters of the computation.
        why: Mechanism of a miss, or why there is no model.
        cause: Whose a miss is; ours, unless it is known to be another's.
        spot: Where it stands in a picture.
    """

    id: str
    document: str
    item: str
    what: str
    kind: Kind
    published: Value
    unit: str
    band: Band | None
    because: str
    how: str | None
    given: Mapping[str, Any]
    why: str
    cause: Cause = "model"
    spot: Spot | None


@dataclass(frozen=True, kw_only=True)
class Item:
    """A figure, table or numbered observation of a document."""

    id: str
    title: str


@dataclass(frozen=True, kw_only=True)
class Document:
    """A source document with everything of it that is in the ledger."""

    id: str
    title: str
    source: str
    items: Sequence[Item]
    claims: Sequence[Claim]
    settings: Mapping[str, Any] = field(default_factory=dict)

    def item(self, name: str) -> Item:
        """An item by its id."""
        return next(item for item in self.items if item.id == name)


@cache
def documents() -> tuple[Document, ...]:
    """All documents, by id."""
    return tuple(_document(lookup.catalog_table("claims", name)) for name in lookup.catalog_names("claims"))


def claims(only: Sequence[str] = ()) -> list[Claim]:
    """Claims whose id, or the start of whose id, matches one of the patterns; all without patterns.

    Raises:
        RequestError: Nothing matches a pattern.
    """
    every = [claim for document in documents() for claim in document.claims]
    for pattern in only:
        if not any(_matches(claim, pattern) for claim in every):
            known = ", ".join(document.id for document in documents())
            message = (
                f"--only {pattern}: no claim is called so\nhint: claims begin with {known}; `*` stands for anything"
            )
            raise RequestError(message)
    return [claim for claim in every if not only or any(_matches(claim, pattern) for pattern in only)]


def settings(document: str) -> Mapping[str, Any]:
    """What the runs of a document were given; inputs of ours."""
    return next(each.settings for each in documents() if each.id == document)


def _matches(claim: Claim, pattern: str) -> bool:
    """`liu24.table3` names all claims below it; `liu24.fig1` does not name `liu24.fig17`."""
    return fnmatchcase(claim.id, pattern) or fnmatchcase(claim.id, f"{pattern}.*")


def _document(data: dict[str, Any]) -> Document:
    given = data.get("settings", {})
    rows = [row for entry in data["claims"] for row in _rows(data["id"], entry, given)]
    for group in data.get("unread", []):
        rows += [_unread(data["id"], item, group["why"]) for item in group["items"]]
    named = {"id": data["id"], "title": data["title"], "source": data["source"]}
    return Document(**named, items=_items(data), claims=rows, settings=given)


def _items(data: dict[str, Any]) -> list[Item]:
    listed = [Item(id=name, title=title) for name, title in data["items"].items()]
    return listed + [Item(id=name, title="") for group in data.get("unread", []) for name in group["items"]]


def _unread(document: str, item: str, why: str) -> Claim:
    """An item of which the numbering tells, and nothing that we could read."""
    blank: dict[str, Any] = {"published": None, "unit": "", "band": None, "because": "", "how": None, "given": {}}
    return Claim(
        id=f"{document}.{item}", document=document, item=item, what="", kind="prediction", why=why, spot=None, **blank
    )


def _rows(document: str, entry: dict[str, Any], given: Mapping[str, Any]) -> list[Claim]:
    """A claim of the file, or one for each of its points."""
    if "points" not in entry:
        return [_claim(document, entry, entry["id"], None, _written(entry.get("published"), given))]
    points = _written(entry["points"], given)
    return [_claim(document, entry, f"{entry['id']}.{x}", x, value) for x, value in points.items()]


def _written(value: Any, given: Mapping[str, Any]) -> Any:  # noqa: ANN401 (a value, or points)
    """What an entry holds, or the setting, case or series that it names: a figure is written once."""
    if not isinstance(value, dict) or not {"setting", "case", "series"} & value.keys():
        return value
    if "case" in value:
        return _at(_case(value["case"])[value.get("part", "claims")], value["claim"])
    if "series" in value:
        return {threads: _series()[value["series"]][threads] for threads in map(str, value["threads"])}
    return _at(given, value["setting"])


def _at(found: Any, keys: Sequence[str | int]) -> Any:  # noqa: ANN401 (any TOML)
    for key in keys:
        found = found[key]
    return found


@cache
def _case(name: str) -> Mapping[str, Any]:
    """A case of `tierloom.capacity`, which keeps what came out beside what went in."""
    return lookup.catalog_table("capacity", name)


@cache
def _series() -> Mapping[str, Mapping[str, float]]:
    """Triad bandwidth by threads, by group and name of the series: what `tierloom pmem stream --group` shows."""
    groups = lookup.catalog_table("pmem", "streamer")["groups"]
    return {f"{group['name']} {each['name']}": each["triad_gb_s"] for group in groups for each in group["series"]}


def _claim(document: str, entry: dict[str, Any], name: str, x: str | None, published: Value) -> Claim:
    parameters = dict(entry.get("with", {}))
    if x is not None and "over" in entry:
        parameters[entry["over"]] = int(x) if x.isdecimal() else x
    band = entry.get("band")
    return Claim(
        id=f"{document}.{name}",
        document=document,
        item=entry["item"],
        what=entry["what"].replace("{x}", x or ""),
        kind=entry.get("kind", "prediction"),
        published=published,
        unit=entry.get("unit", ""),
        band=Band(**_ends(band)) if band else None,
        because=entry.get("because", ""),
        how=entry.get("how"),
        given=parameters,
        why=_of_point(entry.get("why", ""), x),
        cause=_cause(_of_point(entry.get("cause", ""), x)),
        spot=_spot(entry.get("plot"), x, entry.get("over", "")),
    )


def _of_point(words: str | Mapping[str, str], x: str | None) -> str:
    """The same for all points, or each its own."""
    return words if isinstance(words, str) else words.get(x or "", "")


def _cause(word: str) -> Cause:
    if not word:
        return "model"
    if word not in get_args(Cause):
        message = f"cause = {word!r}: not one of {', '.join(get_args(Cause))}"
        raise ValueError(message)
    return cast("Cause", word)


def _ends(band: Mapping[str, Any]) -> dict[str, Any]:
    """`from` is a keyword, so the ends are spelt otherwise in code."""
    return {{"from": "low", "to": "high"}.get(key, key): value for key, value in band.items()}


def _spot(plot: Mapping[str, str] | None, x: str | None, over: str) -> Spot | None:
    if plot is None:
        return None
    return Spot(figure=plot["figure"], series=plot["series"], x=x if x is not None else plot["x"], over=over)
