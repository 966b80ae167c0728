"""The results of a sweep on disk: an SQLite file, keyed by content, that outlives crashes.

One writer, the process that was asked to sweep; a transaction a batch. What is in the file is never
computed again, except points whose worker was lost. Rows are kept as a shape (the names and kinds of the
columns, the same for most points) and a list of values.
"""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Self, cast

from tierloom.errors import StudyError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from tierloom.sweeps.rows import Row

DONE, REFUSED, LOST = "done", "refused", "lost"
"""Computed; the engine says why it cannot be; a fault of ours or of the machine, worth another try."""

BROKEN = (sqlite3.Error, UnicodeDecodeError)
"""What a damaged file makes of SQLite; its own words about the damage may be no text."""

_TABLES = """
create table if not exists shapes (id integer primary key, text text not null unique);
create table if not exists results (
    key blob primary key, state text not null, error text, seconds real not null,
    shape integer not null references shapes, cells text not null
) without rowid;
create temp table wanted (position integer primary key, key blob not null);
"""


@dataclass(frozen=True)
class Result:
    """What became of one point; `shape` and `cells` are its row, as JSON."""

    key: bytes
    state: str
    error: str | None
    seconds: float
    shape: str = "{}"
    cells: str = "[]"

    @classmethod
    def of(cls, key: bytes, seconds: float, row: Row) -> Result:
        """The result of a point that was computed."""
        shape = _shape(tuple(row), tuple(map(type, row.values())))
        return cls(key, DONE, None, seconds, shape, json.dumps(list(row.values())))

    @property
    def row(self) -> Row:
        """The row."""
        return dict(zip(columns(self.shape), json.loads(self.cells), strict=True))


@lru_cache
def _shape(names: tuple[str, ...], kinds: tuple[type, ...]) -> str:
    return json.dumps(dict(zip(names, (kind.__name__ for kind in kinds), strict=True)))


@lru_cache
def columns(shape: str) -> dict[str, str]:
    """Names of a shape's columns, and the names of their types."""
    return cast("dict[str, str]", json.loads(shape))


class Store:
    """Results by key; used in a `with` block, which ends with words where the file turns out to be damaged.

    Raises:
        StudyError: The file is no store, or is damaged.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = sqlite3.connect(path, timeout=60.0)
        try:
            self._file.executescript(_TABLES)
            self._shapes = {text: at for at, text in self._file.execute("select id, text from shapes")}
        except BROKEN as problem:
            self._file.close()
            raise self._damaged(problem) from problem

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, problem: BaseException | None, *_: object) -> None:
        self._file.close()
        if isinstance(problem, BROKEN):
            raise self._damaged(problem) from problem

    def _damaged(self, problem: BaseException) -> StudyError:
        return StudyError(f"{self._path}: {problem}\nhint: move it away, or choose another folder with -o")

    def want(self, keys: Iterable[bytes]) -> None:
        """Says which results the study at hand is about, in the order of its points; adds to those before."""
        with self._file:
            self._file.executemany("insert into wanted (key) values (?)", ((key,) for key in keys))

    def missing(self, *, retry: bool) -> set[bytes]:
        """Wanted keys that have no result, or one that is worth another try; with `retry`, all that failed."""
        again = (REFUSED, LOST) if retry else (LOST, LOST)
        query = """select wanted.key from wanted left join results using (key)
                   where results.key is null or results.state in (?, ?)"""
        return {key for (key,) in self._file.execute(query, again)}

    def put(self, results: Iterable[Result]) -> None:
        """Adds results, all of them or none."""
        with self._file:
            rows = [
                (each.key, each.state, each.error, each.seconds, self._at(each.shape), each.cells) for each in results
            ]
            self._file.executemany("insert or replace into results values (?, ?, ?, ?, ?, ?)", rows)

    def _at(self, shape: str) -> int:
        if shape not in self._shapes:
            self._file.execute("insert or ignore into shapes (text) values (?)", (shape,))
            self._shapes[shape] = self._file.execute("select id from shapes where text = ?", (shape,)).fetchone()[0]
        at: int = self._shapes[shape]
        return at

    def get(self, key: bytes) -> Result | None:
        """One result, if there is one."""
        query = """select key, state, error, seconds, text, cells
                   from results join shapes on shape = shapes.id where key = ?"""
        found = self._file.execute(query, (key,)).fetchone()
        return Result(*found) if found else None

    def wanted(self) -> Iterator[tuple[bytes, str, str | None, float, str, str]]:
        """Key, state, error, seconds, shape and cells of the wanted results, in the order of their points."""
        query = """select wanted.key, state, error, seconds, text, cells
                   from wanted join results using (key) join shapes on shape = shapes.id order by position"""
        yield from self._file.execute(query)

    def shapes(self) -> list[dict[str, str]]:
        """The different shapes of the wanted results."""
        query = "select distinct text from wanted join results using (key) join shapes on shape = shapes.id"
        return [columns(text) for (text,) in self._file.execute(query)]

    def tally(self) -> dict[str, tuple[int, float]]:
        """By state, how many wanted results there are and the seconds that they took."""
        query = "select state, count(*), sum(seconds) from wanted join results using (key) group by state"
        return {state: (count, seconds) for state, count, seconds in self._file.execute(query)}

    def errors(self) -> list[tuple[str, int]]:
        """Errors of the wanted results, and how many points have each."""
        query = """select error, count(*) from wanted join results using (key)
                   where error is not null group by error order by count(*) desc, error"""
        return list(self._file.execute(query))
