"""The charts of a report as objects, for a notebook: the page's specifications, each a document that stands alone.

What Jupyter gets of a chart is Vega-Lite (Vega of call stacks and areas), and for viewers that draw neither a picture,
or a table where the package vl-convert-python is not installed. There is no ``text/html`` among it: JupyterLab prefers
that to Vega, and would show no chart.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from tierloom.differences import Difference
from tierloom.errors import RequestError
from tierloom.notebook_tables import SHOWN, Charted, Framed, table
from tierloom.nouns import Machine, Plan, Profile
from tierloom.policy_search import Comparison
from tierloom.readers import meant
from tierloom.report.pages import builders, earlier_answers, parts, sources, vega
from tierloom.report.pages.sources import Source
from tierloom.report.table_layout.table import Table
from tierloom.report.tables.differences import document as difference_document
from tierloom.sweeps import Sweep

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tierloom.columns import Column, Row

Bundle = dict[str, Any]

LITE, VEGA = "application/vnd.vegalite.v5+json", "application/vnd.vega.v5+json"
"""What notebooks call the two grammars."""


@dataclass(frozen=True, repr=False)
class Chart(Framed):
    """One chart of a report; a notebook draws it.

    Attributes:
        title: What stands above it.
        about: How to read it.
        spec: A whole document of Vega-Lite, or of Vega (call stacks, areas), with data and colours in it.
    """

    title: str
    about: str
    spec: vega.Document
    _table: Table = field(default_factory=lambda: Table([]))

    @classmethod
    def of(cls, chart: parts.Chart) -> Chart:
        """A chart of a page."""
        return cls(chart.title, chart.told, vega.standalone(chart), chart.table)

    @property
    def columns(self) -> Sequence[Column]:
        """Of the table under the chart."""
        return self._table.columns

    def told(self) -> Sequence[Row]:
        """The table of what is drawn, as the page has it under the chart."""
        return self._table.rows

    def save(self, path: str | Path) -> None:
        """Writes it as a picture: ``.png``, ``.svg`` or ``.pdf``; it takes the package vl-convert-python.

        Raises:
            MissingPackageError: The package is not installed.
            RequestError: The ending is another, or the file cannot be written.
        """
        from tierloom.report import picture

        picture.write(self.spec, Path(path))

    def __repr__(self) -> str:
        return f"<Chart {self.title}: {len(self._table.rows)} rows>"

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> Bundle:  # noqa: ARG002 (IPython's)
        """What Jupyter shows in the place of ``repr``: the first of these that it can."""
        drawn = LITE if vega.is_lite(self.spec) else VEGA
        return {drawn: self.spec, **self._fallback(), "text/plain": repr(self)}

    def _fallback(self) -> Bundle:
        """For viewers that draw no Vega; Markdown may hold a table of HTML, and stands behind Vega everywhere."""
        if importlib.util.find_spec("vl_convert") is None:
            return {"text/markdown": table(self.title, self.columns, self.told()[:SHOWN], len(self._table.rows))}
        from tierloom.report import picture

        return {"image/svg+xml": picture.svg(self.spec)}


class Charts(Sequence[Chart]):
    """Charts in the order of the page, by place or by title; a notebook draws them all."""

    def __init__(self, charts: Sequence[Chart]) -> None:
        self._charts = tuple(charts)

    @property
    def titles(self) -> list[str]:
        """Of all charts."""
        return [chart.title for chart in self._charts]

    @overload
    def __getitem__(self, at: int | str) -> Chart: ...
    @overload
    def __getitem__(self, at: slice) -> Charts: ...
    def __getitem__(self, at: int | str | slice) -> Chart | Charts:
        """The first chart of a title, the one at a place, or some.

        Raises:
            RequestError: None is called so.
        """
        if isinstance(at, slice):
            return Charts(self._charts[at])
        if isinstance(at, int):
            return self._charts[at]
        for chart in self._charts:
            if chart.title == at:
                return chart
        message = f"{at}: no chart here is called so\nhint: {meant(at, self.titles)}"
        raise RequestError(message)

    def __len__(self) -> int:
        return len(self._charts)

    def __repr__(self) -> str:
        return f"<Charts: {'; '.join(self.titles)}>"

    def _ipython_display_(self) -> None:
        """Shows one after the other."""
        from IPython.display import display

        display(*self._charts)


def charts(answer: object) -> Charts:
    """What a report draws of a result: the charts of its section, for a notebook.

    Drawings that are no charts, such as a machine's topology, are on the page only.

    Args:
        answer: A machine, profile, plan or answer (whose ``.charts()`` is this); a document as :func:`expand` and
            ``offload.serve`` return it, or a verb prints it in JSON; a name or path as ``tierloom report`` takes it.
            Runs of :func:`simulate`, or of :func:`expand`, in a list stand side by side.

    Raises:
        RequestError: It is nothing that a report knows.

    Example:
        >>> import tierloom
        >>> still, moved = (tierloom.simulate("silo", "liu-a", policy) for policy in ("none", "tiering"))
        >>> shown = charts([still, moved])
        >>> shown.titles[0], sorted({row["policy"] for row in shown[0].rows()})
        ('Where the time goes', ['none', 'tiering'])
    """
    read = list(_sources(answer))
    shelf = sources.Shelf.of(read)
    shown = read[:1] if isinstance(answer, Comparison) else read
    made = [builders.section(source, shelf) for source in shown]
    doubts = builders.doubts(made) or [
        f"{each.kind}: a report has no charts of it" for each in shown if not _drawn(each)
    ]
    if not shown:
        doubts = ["nothing was given"]
    if doubts:
        message = f"{doubts[0]}\nhint: give a whole noun or answer, or a document of `--json`"
        raise RequestError(message)
    return Charts([Chart.of(part) for section in made for part in section.charts if isinstance(part, parts.Chart)])


def _drawn(source: Source) -> bool:
    return source.kind in builders.BUILDERS


def _sources(answer: object) -> Iterator[Source]:
    """What a page would be made from; of a comparison, also what it is about."""
    match answer:
        case str() | Path():
            yield from sources.read([str(answer)])
        case Machine():
            yield sources.of_machine(answer)
        case Profile():
            yield sources.of_profile(answer)
        case Plan():
            yield Source("plan", answer.data["profile"], {**answer.data}, answer)
        case Comparison():
            yield from sources.of_comparison(answer)
        case Sweep():
            yield sources.swept(answer.table, answer.data["study"])
        case Difference():
            yield Source("difference", "difference", {**difference_document(answer)})
        case _:
            yield from sources.from_data(_document(answer), "answer")


def _document(answer: object) -> object:
    """Runs as what ``--json`` prints of them together, anything else as it is."""
    several = answer if isinstance(answer, list | tuple) else [answer]
    runs = [dict(told) if isinstance(told := _told(each), Mapping) else told for each in several]
    together = {"runs": runs}
    if earlier_answers.kind_of(together) != earlier_answers.ANYTHING:
        return together
    return runs if isinstance(answer, list | tuple) else runs[0]


def _told(answer: object) -> object:
    return getattr(answer, "data", None) if isinstance(answer, Charted) else answer
