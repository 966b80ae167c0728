"""What a sweep found: a Parquet file with a row a point, and the few lines that a person reads first."""

from __future__ import annotations

import itertools
import json
import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tierloom import outputs
from tierloom.columns import undeclared
from tierloom.errors import MissingPackageError
from tierloom.notebook_tables import SHOWN, Charted, Tabular, package, table
from tierloom.sweeps.keys import code_id
from tierloom.sweeps.store import DONE, LOST, REFUSED, columns

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    import pandas as pd
    import polars as pl

    from tierloom.columns import Column
    from tierloom.sweeps.points import Point
    from tierloom.sweeps.rows import Cell, Row
    from tierloom.sweeps.store import Store
    from tierloom.sweeps.studies import Study

TABLE = "results.parquet"
GROUP_ROWS = 20_000
"""Rows that are held in memory while the table is written."""

FAILURES = 5
"""Reasons of failures that a summary names."""

ABOUT = {"state": "str", "error": "str", "seconds": "float", "key": "str"}
"""What every row ends with: what became of the point."""


@dataclass(frozen=True, repr=False)
class Sweep(Charted, Tabular):
    """Results of a study; ``data`` is the document that the verb prints as JSON.

    A row a point, in the Parquet file :attr:`table`; a notebook shows the first of them.
    """

    folder: Path
    data: dict[str, Any]

    @property
    def total(self) -> int:
        """Points of the study."""
        return int(self.data["points"])

    @property
    def counts(self) -> dict[str, int]:
        """Points by what became of them: ``done``, ``refused``, ``lost``."""
        return {state: int(self.data[state]) for state in (DONE, REFUSED, LOST)}

    @property
    def table(self) -> Path:
        """The Parquet file."""
        return self.folder / TABLE

    @property
    def columns(self) -> Sequence[Column]:
        """Of a point: those of the file."""
        _, parquet = _arrow()
        return undeclared(parquet.read_schema(self.table).names, self._first)

    def told(self) -> list[Row]:
        """A row a point: its parameters, its results, and what became of it."""
        _, parquet = _arrow()
        rows: list[Row] = parquet.read_table(self.table).to_pylist()
        return rows

    @cached_property
    def _first(self) -> list[Row]:
        """As many rows as a notebook shows."""
        _, parquet = _arrow()
        first = next(parquet.ParquetFile(self.table).iter_batches(SHOWN), None)
        return first.to_pylist() if first is not None else []

    def _repr_html_(self) -> str:
        return table(repr(self), self.columns, self._first, self.total)

    def to_pandas(self) -> pd.DataFrame:
        """The Parquet file as a pandas data frame, column by column."""
        frame: pd.DataFrame = package("pandas").read_parquet(self.table)
        return frame

    def to_polars(self) -> pl.DataFrame:
        """The Parquet file as a Polars data frame, column by column."""
        frame: pl.DataFrame = package("polars").read_parquet(self.table)
        return frame

    def __repr__(self) -> str:
        return f"<Sweep {self.data['study']}: {self.total} points in {self.table}>"

    @classmethod
    def collect(
        cls, study: Study, folder: Path, store: Store, points: list[Point], computed: int, seconds: float
    ) -> Sweep:
        """Writes the table of a study's results and sums them up."""
        write_table(folder / TABLE, study, points, store)
        return cls(folder, _summary(study, folder, store, len(points), computed, seconds))


def write_table(path: Path, study: Study, points: list[Point], store: Store) -> None:
    """Writes a row a point, a group at a time; the file takes its place only when it is whole.

    Raises:
        MissingPackageError: pyarrow is not installed.
    """
    pa, parquet = _arrow()
    kinds = {"str": pa.string(), "int": pa.int64(), "float": pa.float64(), "bool": pa.bool_()}
    names = _kinds(study, points, store)
    about = {"study": study.text, "tierloom": code_id()}
    schema = pa.schema([(name, kinds[kind]) for name, kind in names.items()], metadata=about)
    fixed = {name: _cell(value) for name, value in study.parameters.items()}
    results = store.wanted()
    with outputs.whole(path) as part, parquet.ParquetWriter(part, schema, compression="zstd") as file:
        for at in range(0, len(points), GROUP_ROWS):
            some = points[at : at + GROUP_ROWS]
            cells = {name: [value] * len(some) for name, value in fixed.items()}
            cells |= {name: [point[name] for point in some] for name in study.axes}
            cells |= _group(list(itertools.islice(results, len(some))))
            arrays = [_array(pa, cells.get(name), kinds[kind], len(some)) for name, kind in names.items()]
            file.write_table(pa.Table.from_arrays(arrays, schema=schema))


def _kinds(study: Study, points: list[Point], store: Store) -> dict[str, str]:
    """Names and kinds of all columns: parameters, results, then what became of the point."""
    found = {name: type(_cell(value)).__name__ for name, value in study.parameters.items()}
    for name in study.axes:
        for kind in {type(point[name]).__name__ for point in points}:
            found[name] = _common(found.get(name), kind)
    for shape in store.shapes():
        for name, kind in shape.items():
            found[name] = _common(found.get(name), kind)
    return {name: "str" if kind == "NoneType" else kind for name, kind in found.items()} | ABOUT


def _common(one: str | None, other: str) -> str:
    if one is None or one == other or one == "NoneType":
        return other
    if other == "NoneType":
        return one
    return "float" if {one, other} == {"int", "float"} else "str"


def _cell(value: Any) -> Cell:  # noqa: ANN401 (what TOML holds)
    return value if isinstance(value, str | int | float | bool) else json.dumps(value, default=str)


def _group(results: list[tuple[bytes, str, str | None, float, str, str]]) -> dict[str, list[Cell]]:
    """Results as columns; a column that a result lacks is empty there."""
    loaded = json.loads(f"[{','.join(cells for *_, cells in results)}]")
    found: dict[str, list[Cell]] = {}
    for shape in dict.fromkeys(shape for *_, shape, _ in results):
        members = [at for at, result in enumerate(results) if result[4] == shape]
        for name, values in zip(columns(shape), zip(*(loaded[at] for at in members), strict=True), strict=True):
            column = found.setdefault(name, [None] * len(results))
            for at, value in zip(members, values, strict=True):
                column[at] = value
    keys, states, errors, seconds, *_ = zip(*results, strict=True)
    about = {"state": states, "error": errors, "seconds": seconds, "key": [key.hex() for key in keys]}
    return {**found, **{name: list(column) for name, column in about.items()}}


def _array(pa: Any, cells: list[Cell] | None, kind: Any, length: int) -> Any:  # noqa: ANN401 (pyarrow has no types)
    if cells is None:
        return pa.nulls(length, kind)
    if kind == pa.string():
        cells = [cell if cell is None else str(cell) for cell in cells]
    return pa.array(cells, kind)


def _arrow() -> tuple[Any, Any]:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as problem:
        message = "a table of results needs pyarrow\nhint: pip install '.[sweep]'"
        raise MissingPackageError(message) from problem
    return pa, parquet


def _summary(study: Study, folder: Path, store: Store, total: int, computed: int, seconds: float) -> dict[str, Any]:
    column, sense = next(iter((dict(study.sample.objective) or dict([study.verb.objective])).items()))
    tally = store.tally()
    spread, best = _best(folder / TABLE, column, sense, study.axes)
    return {
        "study": study.name,
        "title": study.title,
        "verb": study.verb.name,
        "points": total,
        **{state: tally.get(state, (0, 0.0))[0] for state in (DONE, REFUSED, LOST)},
        "computed": computed,
        "seconds": seconds,
        "computing_s": sum(took for _, took in tally.values()),
        "objective": {"column": column, "sense": sense, **spread},
        "best": best,
        "without_effect": _without_effect(folder / TABLE, column, study),
        "failures": _reasons(store),
        "table": str(folder / TABLE),
    }


def _reasons(store: Store) -> list[dict[str, Any]]:
    """The commonest reasons of failures; those that differ only in their numbers count as one."""
    found: dict[str, dict[str, Any]] = {}
    for error, points in store.errors():
        reason = error.split("\nhint:", maxsplit=1)[0]
        entry = found.setdefault(re.sub(r"\d+(\.\d+)?", "0", reason), {"reason": reason, "points": 0})
        entry["points"] += points
    return sorted(found.values(), key=lambda entry: -int(entry["points"]))[:FAILURES]


def _without_effect(table: Path, column: str, study: Study) -> list[str]:
    """Axes of a grid at whose values, whatever the others have, a column is always the same."""
    _, parquet = _arrow()
    if study.sample.method != "grid" or column not in parquet.read_schema(table).names:
        return []
    held = parquet.read_table(table, columns=[*study.axes, column])

    def changes(axis: str) -> bool:
        others = [name for name in study.axes if name != axis]
        found = held.group_by(others).aggregate([(axis, "count_distinct"), (column, "min"), (column, "max")])
        values = found[f"{axis}_count_distinct"].to_pylist()
        least, most = (found[f"{column}_{end}"].to_pylist() for end in ("min", "max"))
        return max(values, default=0) < 2 or least != most

    return [axis for axis in study.axes if not changes(axis)]


def _best(
    table: Path, column: str, sense: str, axes: Iterable[str]
) -> tuple[dict[str, float | None], dict[str, Any] | None]:
    """Least, median and most of a column, and the point that does best in it."""
    import numpy as np

    _, parquet = _arrow()
    known = set(parquet.read_schema(table).names)
    held = parquet.read_table(table, columns=[name for name in dict.fromkeys((*axes, column)) if name in known])
    values = held[column].to_numpy().astype(float) if column in known else np.array([np.nan])
    if np.isnan(values).all():
        return dict.fromkeys(("least", "median", "most")), None
    at = int(np.nanargmin(values) if sense == "minimize" else np.nanargmax(values))
    spread = {"least": np.nanmin(values), "median": np.nanmedian(values), "most": np.nanmax(values)}
    return {name: float(value) for name, value in spread.items()}, held.slice(at, 1).to_pylist()[0]
