"""Published figures beside ours: tables for a terminal and for a document, and the one under --json."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from itertools import groupby
from typing import TYPE_CHECKING, Any, cast

from rich.console import Group
from rich.text import Text

from tierloom.columns import Column
from tierloom.published_claims import studies
from tierloom.published_claims.printed import Figure
from tierloom.report.table_layout.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tierloom.published_claims import Result, Study
    from tierloom.published_claims.documents import ClaimDoc, ClaimsDoc, SpotDoc, TallyDoc
    from tierloom.published_claims.ledger import Cause, Claim, Kind, Value

VERDICT_STYLE = {"in band": "green", "missed": "red", "not modelled": "dim"}
KINDS: tuple[Kind, ...] = ("prediction", "ordering", "arithmetic", "input")
BEGIN, END = "<!-- claims -->", "<!-- end of claims -->"


def document(results: Sequence[Result]) -> ClaimsDoc:
    """What ``--json`` prints."""
    tally: dict[str, TallyDoc] = {}
    for kind in KINDS:
        of_kind = [result for result in results if result.claim.kind == kind]
        tally[kind] = {
            "in_band": _count(of_kind, "in band"),
            "missed": _count(of_kind, "missed"),
            "not_modelled": _count(of_kind, "not modelled"),
        }
    return {"tally": tally, "claims": [_row(result) for result in results]}


def _count(results: Sequence[Result], verdict: str) -> int:
    return sum(result.verdict == verdict for result in results)


def _row(result: Result) -> ClaimDoc:
    claim = result.claim
    printed = claim.published.printed if isinstance(claim.published, Figure) else ()
    return {
        "id": claim.id,
        "study": claim.study,
        "section": claim.section,
        "place": claim.place,
        "what": claim.what,
        "kind": claim.kind,
        "printed": (printed[0] if len(printed) == 1 else list(printed)) or None,
        "read_off": claim.read_off or None,
        "unit": claim.unit,
        "published": claim.value,
        "ours": result.ours,
        "band": list(claim.accepted) if claim.accepted else None,
        "verdict": result.verdict,
        "cause": claim.cause if result.verdict == "missed" else None,
        "why": "" if result.verdict == "in band" else claim.why,
        "spot": cast("SpotDoc", asdict(claim.spot)) if claim.spot else None,
    }


def tables(results: Sequence[Result]) -> Group:
    """A table a document with the reasons below it, and the totals."""
    parts: list[Any] = []
    for name, group in groupby(results, key=lambda result: result.claim.study):
        of_study = list(group)
        parts += [_table(name, of_study), *_reasons(of_study), Text(tally(of_study), style="bold"), ""]
    return Group(*parts, Text(f"All: {tally(results)}", style="bold"))


def _table(name: str, results: Sequence[Result]) -> Table:
    origin = _study(name)
    rows = [{**_cells(each), "verdict": Text(each.verdict, style=VERDICT_STYLE[each.verdict])} for each in results]
    return Table(CLAIMS, rows, f"{origin.title} ({origin.source})")


CLAIMS = (
    *(Column("claim", "claim"), Column("what", "what was published", rank="key"), Column("kind", "kind", rank="extra")),
    *(Column("published", "published", "number", "key"), Column("ours", "ours", "number", "key")),
    *(Column("band", "band", "number"), Column("verdict", "verdict", rank="key")),
)


def _study(name: str) -> Study:
    return next(each for each in studies() if each.id == name)


def _cells(result: Result) -> dict[str, str]:
    """A result by column, each figure as the paper writes it."""
    claim = result.claim
    return {
        "claim": _short(claim),
        "place": claim.place,
        "what": claim.what,
        "kind": claim.kind,
        "published": published_text(claim),
        "ours": value_text(result.ours, claim.unit),
        "band": band_text(claim),
        "verdict": result.verdict,
    }


def _short(claim: Claim) -> str:
    return claim.id.removeprefix(f"{claim.study}.")


def published_text(claim: Claim) -> str:
    """A figure as it is printed, with its unit; yes or no for what holds or does not."""
    found = claim.published
    if not isinstance(found, Figure) or not found.printed:
        return value_text(claim.value, claim.unit)
    unit = "%" if found.unit == "of 1" else found.unit
    return " to ".join(text if text.endswith(unit) else f"{text} {unit}" for text in found.printed)


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


def band_text(claim: Claim) -> str:
    """The accepted range."""
    if claim.accepted is None:
        return ""
    low, high = (value_text(end, claim.unit) for end in claim.accepted)
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
    return ", ".join(_short(result.claim) for result in results)


def tally(results: Sequence[Result]) -> str:
    """Counts by verdict, numeric predictions first and apart from the rest."""
    predicted = [result for result in results if result.claim.kind == "prediction"]
    judged = [result for result in predicted if result.verdict != "not modelled"]
    share = f" ({_count(judged, 'in band') / len(judged):.0%})" if judged else ""
    rest = ", ".join(f"{_of(results, kind)} {words}" for kind, words in BESIDE.items() if _of(results, kind))
    told = f"{_count(judged, 'in band')} of {len(judged)} numeric predictions in band{share}"
    unmodelled = _count(results, "not modelled")
    return f"{told}{_causes(judged)}; besides {rest or 'nothing'}; {unmodelled} not modelled"


BESIDE: dict[Kind, str] = {"ordering": "orderings", "arithmetic": "sums", "input": "inputs"}


def _of(results: Sequence[Result], kind: Kind) -> str:
    """How many of a kind come out right, of those that are modelled."""
    judged = [result for result in results if result.claim.kind == kind and result.verdict != "not modelled"]
    return f"{_count(judged, 'in band')} of {len(judged)}" if judged else ""


MISSED_BY: dict[Cause, str] = {
    "contradiction": "contradict their own study",
    "not published": "hang on what it does not publish",
    "model": "are our models'",
}


def _causes(predictions: Sequence[Result]) -> str:
    """Whose the misses are."""
    counted = Counter(result.claim.cause for result in predictions if result.verdict == "missed")
    told = ", ".join(f"{counted[cause]} {words}" for cause, words in MISSED_BY.items() if counted[cause])
    return f" (of {counted.total()} missed, {told})" if told else ""


def markdown(results: Sequence[Result]) -> str:
    """The tables as text of a document, between two marks."""
    lines = [BEGIN, "", f"**All: {tally(results)}.**", ""]
    for name, group in groupby(results, key=lambda result: result.claim.study):
        lines += _section(name, list(group))
    return "\n".join([*lines, END])


def _section(name: str, results: Sequence[Result]) -> Iterator[str]:
    origin = _study(name)
    yield from (f"## {origin.title}", "", f"{origin.source}; `tierloom reproduce --only {name}`. {tally(results)}.", "")
    yield from ("| section | here it is | how |", "|---|---|---|")
    for section in origin.sections:
        yield f"| {section.title} | {section.state} | {section.how} |"
    columns = [CLAIMS[0], Column("place", "place"), *CLAIMS[1:]]
    yield from ("", f"| {' | '.join(column.heading for column in columns)} |")
    yield "|" + "".join("---|" if column.side == "left" else "---:|" for column in columns)
    for result in results:
        cells = _cells(result)
        yield f"| {' | '.join(cells[column.key].replace('|', '/') for column in columns)} |"
    yield ""
    yield from (f"- **{verdict}**, {_names(of)}: {why}" for verdict, why, of in _grouped_reasons(results))
    yield ""


def into_page(page: str, written: str) -> str:
    """A document with what stands between the marks replaced; what was written alone where there are none."""
    before, begun, rest = page.partition(BEGIN)
    _, ended, after = rest.partition(END)
    return f"{before}{written}{after}" if begun and ended else f"{written}\n"
