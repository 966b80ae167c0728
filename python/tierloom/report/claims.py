"""Published figures beside ours: tables for a terminal and for a document, and the one under --json."""

from __future__ import annotations

from collections import Counter
from itertools import groupby
from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.text import Text

from tierloom.report.layout import table
from tierloom.reproducing import documents

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.table import Table

    from tierloom.reproducing import Document, Result
    from tierloom.reproducing.documents import ClaimDoc, ClaimsDoc
    from tierloom.reproducing.ledger import Cause, Value

VERDICT_STYLE = {"in band": "green", "missed": "red", "not modelled": "dim"}
BEGIN, END = "<!-- claims -->", "<!-- end of claims -->"


def document(results: Sequence[Result]) -> ClaimsDoc:
    """What ``--json`` prints."""
    return {"claims": [_row(result) for result in results]}


def _row(result: Result) -> ClaimDoc:
    claim = result.claim
    origin = _document_of(result)
    item = origin.item(claim.item)
    return {
        "id": claim.id,
        "source": f"{origin.source}: {item.title or item.id}",
        "kind": claim.kind,
        "published": claim.published,
        "ours": result.ours,
        "band": list(result.band) if result.band else None,
        "verdict": result.verdict,
        "why": "" if result.verdict == "in band" else claim.why,
    }


def _document_of(result: Result) -> Document:
    return next(each for each in documents() if each.id == result.claim.document)


def tables(results: Sequence[Result]) -> Group:
    """A table a document with the reasons below it, and the totals."""
    parts: list[Any] = []
    for name, group in groupby(results, key=lambda result: result.claim.document):
        of_document = list(group)
        parts += [_table(name, of_document), *_reasons(of_document), Text(tally(of_document), style="bold"), ""]
    return Group(*parts, Text(f"All: {tally(results)}", style="bold"))


def _table(name: str, results: Sequence[Result]) -> Table:
    origin = next(each for each in documents() if each.id == name)
    made = table(
        f"{origin.title} ({origin.source})",
        ("claim", "left"),
        ("what was published", "left"),
        ("kind", "left"),
        ("published", "right"),
        ("ours", "right"),
        ("band", "right"),
        ("verdict", "left"),
    )
    for result in results:
        if result.claim.what:
            cells = _cells(result)
            made.add_row(*cells[:-1], Text(cells[-1], style=VERDICT_STYLE[cells[-1]]))
    return made


def _cells(result: Result) -> tuple[str, ...]:
    claim = result.claim
    name = claim.id.removeprefix(f"{claim.document}.")
    shown = (value_text(claim.published, claim.unit), value_text(result.ours, claim.unit), band_text(result))
    return name, claim.what, claim.kind, *shown, result.verdict


def value_text(value: Value, unit: str) -> str:
    """A value with its unit; yes or no for what holds or does not."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if unit == "of 1":
        return f"{round(value * 100, 2) + 0.0:.3g} %"  # + 0.0: no minus zero
    number = f"{value:,.0f}" if abs(value) >= 1e4 else f"{value:.4g}"
    return f"{number}x" if unit == "x" else f"{number} {unit}".strip()


def band_text(result: Result) -> str:
    """A band with its ends."""
    if result.band is None:
        return ""
    low, high = (value_text(end, result.claim.unit) for end in result.band)
    if low == high:
        return "exactly"
    return f"{low} to {high}" if low and high else f"from {low}" if low else f"to {high}"


def _grouped_reasons(results: Sequence[Result]) -> Iterator[tuple[str, str, list[Result]]]:
    """Verdicts and reasons in the order of the claims, each with all of its claims."""
    found: dict[tuple[str, str], list[Result]] = {}
    for result in results:
        if result.verdict != "in band":
            found.setdefault((_judged(result), result.claim.why or "not understood"), []).append(result)
    yield from ((verdict, why, of) for (verdict, why), of in found.items())


def _judged(result: Result) -> str:
    """The verdict, and whose a miss is where it is not our model's."""
    foreign = result.verdict == "missed" and result.claim.cause != "model"
    return f"{result.verdict} ({result.claim.cause})" if foreign else result.verdict


def _reasons(results: Sequence[Result]) -> Iterator[Text]:
    for verdict, why, of in _grouped_reasons(results):
        yield Text.assemble((f"{verdict}: ", VERDICT_STYLE[of[0].verdict]), (_names(of), "bold"), f": {why}")


def _names(results: Sequence[Result]) -> str:
    return ", ".join(result.claim.id.removeprefix(f"{result.claim.document}.") for result in results)


def tally(results: Sequence[Result]) -> str:
    """Counts by verdict, inputs apart."""
    modelled = [result for result in results if result.verdict != "not modelled"]
    predictions = [result for result in modelled if result.claim.kind == "prediction"]
    inputs = [result for result in modelled if result.claim.kind == "input"]
    good, given = (sum(each.verdict == "in band" for each in some) for some in (predictions, inputs))
    share = f" ({good / len(predictions):.0%})" if predictions else ""
    return (
        f"{good} of {len(predictions)} predictions in band{share}, {given} of {len(inputs)} inputs, "
        f"{len(results) - len(modelled)} not modelled{_causes(predictions)}"
    )


MISSED_BY: dict[Cause, str] = {
    "contradiction": "contradict their own study",
    "not published": "hang on what it does not publish",
    "model": "are our models'",
}


def _causes(predictions: Sequence[Result]) -> str:
    """Whose the misses are."""
    counted = Counter(result.claim.cause for result in predictions if result.verdict == "missed")
    told = ", ".join(f"{counted[cause]} {words}" for cause, words in MISSED_BY.items() if counted[cause])
    return f"; of {counted.total()} missed, {told}" if told else ""


def markdown(results: Sequence[Result]) -> str:
    """The tables as text of a document, between two marks."""
    lines = [BEGIN, "", f"**All: {tally(results)}.**", ""]
    for name, group in groupby(results, key=lambda result: result.claim.document):
        lines += _section(name, list(group))
    return "\n".join([*lines, END])


def _section(name: str, results: Sequence[Result]) -> Iterator[str]:
    origin = next(each for each in documents() if each.id == name)
    yield from (f"## {origin.title}", "", f"{origin.source}; `tierloom reproduce --only {name}`. {tally(results)}.", "")
    yield "| claim | what was published | kind | published | ours | band | verdict |"
    yield "|---|---|---|---:|---:|---:|---|"
    for result in results:
        if result.claim.what:
            yield "| " + " | ".join(cell.replace("|", "/") for cell in _cells(result)) + " |"
    yield ""
    yield from (f"- **{verdict}**, {_names(of)}: {why}" for verdict, why, of in _grouped_reasons(results))
    yield ""


def into_page(page: str, written: str) -> str:
    """A document with what stands between the marks replaced; what was written alone where there are none."""
    before, begun, rest = page.partition(BEGIN)
    _, ended, after = rest.partition(END)
    return f"{before}{written}{after}" if begun and ended else f"{written}\n"
