"""Sections become one HTML file: the same sections give the same bytes.

Scripts and styles are put into the file, and the file forbids the browser to fetch anything else.
"""

from __future__ import annotations

import base64
import csv
import gzip
import io
import json
import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from tierloom import __version__, catalog
from tierloom.errors import RequestError
from tierloom.extras import brought_by
from tierloom.forms import EMPTY
from tierloom.report.pages import vega
from tierloom.report.pages.builders import doubts, sections
from tierloom.report.pages.parts import Chart, Drawing
from tierloom.report.pages.vega import own_file
from tierloom.units import count_text

with brought_by("report"):
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup, escape

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tierloom.columns import Column, Row
    from tierloom.report.pages.parts import Section
    from tierloom.report.pages.sources import Source
    from tierloom.report.table_layout.table import Table
    from tierloom.schema import ContentDoc

CHARTS = "vega.js"
"""Vega, Vega-Lite and Vega-Embed in one file; the Makefile takes it out of their Python package."""

MOST_ROWS = 100
"""Rows of a table that a page shows; the page brings all of a longer one as a file (assumed: more nobody reads)."""


@dataclass(frozen=True)
class Page:
    """A page, and what is on it."""

    title: str
    html: str
    contents: list[ContentDoc]
    doubts: list[str]
    """What could not be shown as what it looks like."""


def render(sources: Sequence[Source], title: str | None = None) -> str:
    """The page's HTML; see :func:`page_of`."""
    return page_of(sources, title).html


def page_of(sources: Sequence[Source], title: str | None = None) -> Page:
    """One page of all sources.

    Raises:
        RequestError: The charts' scripts are not beside the package.
    """
    made = sections(sources)
    heading = title or title_of(made)
    contents: list[ContentDoc] = [
        {
            "kind": each.kind,
            "title": each.title,
            "charts": [part.title for part in each.charts],
            "tables": len(each.tables),
        }
        for each in made
    ]
    return Page(heading, html_of(made, heading), contents, doubts(made))


def html_of(made: Sequence[Section], title: str) -> str:
    """Sections as a page."""
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    filters = {f.__name__: f for f in (cell, kind, right, rows_text, slug, spec, laid_out, prose, csv_address)}
    environment.filters.update(filters)
    environment.tests.update(chart=lambda part: isinstance(part, Chart), drawing=lambda part: isinstance(part, Drawing))
    return environment.from_string(own_file("page.html.jinja")).render(
        title=title,
        sections=list(numbered(made)),
        style=own_file("page.css"),
        script=own_file("page.js"),
        theme=own_file(vega.THEME),
        charts=charts_script(),
        most=MOST_ROWS,
        version=__version__,
    )


def laid_out(charts: Sequence[Chart | Drawing]) -> list[tuple[Chart | Drawing, bool]]:
    """Charts and whether each takes a whole line: those that ask for it, and those that would stand alone."""
    made: list[tuple[Chart | Drawing, bool]] = []
    beside = False
    for chart, after in zip(charts, [*charts[1:], None], strict=True):
        whole = _whole(chart) or (not beside and (after is None or _whole(after)))
        beside = not whole and not beside
        made.append((chart, whole))
    return made


def _whole(chart: Chart | Drawing) -> bool:
    return isinstance(chart, Drawing) or chart.wide


def title_of(made: Sequence[Section]) -> str:
    """What the page is about: a plan or a result rather than what went into it."""
    results = [section for section in made if section.kind not in ("machine", "profile")]
    names = list(dict.fromkeys(section.title for section in results or made))
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"


def numbered(made: Sequence[Section]) -> Sequence[tuple[str, Section]]:
    """Sections with names for links, each its own."""
    return [(f"s{index}-{slug(section.title)}", section) for index, section in enumerate(made, 1)]


def slug(text: str) -> str:
    """A name for a link.

    Example:
        >>> slug("mg-e on liu-a")
        'mg-e-on-liu-a'
    """
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


@cache
def charts_script() -> str:
    """The charts' scripts, so that no tag in them ends the page's own.

    Raises:
        RequestError: They are not beside the package.
    """
    path = catalog.native_file(CHARTS)
    if path is None:
        message = f"the scripts of charts, `{CHARTS}`, are not beside the package\nhint: `make install` puts them there"
        raise RequestError(message)
    return path.read_text(encoding="utf-8").replace("</script", "<\\/script")


def spec(chart: Chart) -> Markup:
    """A chart's specification with its data, as JSON that may stand in a page."""
    text = json.dumps(vega.filled(chart), separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return Markup(text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029"))  # noqa: S704 (escaped here)


def prose(text: str) -> Markup:
    """Words in backquotes as code, everything escaped."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))  # noqa: S704 (escaped here)


def csv_address(table: Table) -> str:
    """All rows of a table as a compressed CSV file in an address: for a link that saves it, without network.

    Names of thousands of objects are much alike: compressed they take a tenth. The page's script unpacks it, so that
    most readers get the CSV file itself.
    """
    text = io.StringIO()
    rows = table.plain_rows()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(rows[0] if rows else ())
    writer.writerows(vega.rounded([*row.values()]) for row in rows)
    packed = gzip.compress(text.getvalue().encode(), mtime=0)
    return f"data:application/gzip;base64,{base64.b64encode(packed).decode()}"


def cell(row: Row, column: Column) -> str:
    """What stands in a table's cell; no cell is bare on a page."""
    return column.text(row) or EMPTY


def kind(row: Row, column: Column) -> str:
    """What kind of number stands there, with a mark."""
    return column.kind(row) or ""


def rows_text(table: Table) -> str:
    """How many rows a table has, in words."""
    return count_text(len(table.rows), "row")


def right(column: Column) -> bool:
    """Whether a column keeps to the right."""
    return column.side == "right"
