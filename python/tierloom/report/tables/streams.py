"""Tables of STREAM: ours, what a pool costs, and what was published."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tierloom.columns import Column, Row, told
from tierloom.report.table_layout.table import Table
from tierloom.units import bytes_text, count_text

if TYPE_CHECKING:
    from tierloom.pmem.documents import GroupDoc, PublishedSeriesDoc, StreamDoc, StreamRunDoc

KERNELS = ("copy", "scale", "add", "triad")


def rates(found: StreamDoc) -> Table:
    """Every run, best of its rounds, with the pool's overhead beside it."""
    columns = [
        *(Column("memory", "memory"), Column("threads", "threads", "count")),
        *(Column(kernel, kernel, "hundredths") for kernel in KERNELS),
        Column("published_triad_gb_s", "published triad", "tenths"),
    ]
    rows = [
        told({**run, "memory": _name(run), **{kernel: run["rates"][kernel]["best_gb_s"] for kernel in KERNELS}})
        for run in found["runs"]
    ]
    title = f"STREAM, GB/s, arrays of {bytes_text(found['array_bytes'])}"
    return Table(columns, rows, title, f"Best of the rounds, as STREAM counts bytes. {_durability(found)}")


def overheads(found: StreamDoc) -> Table | None:
    """What the pool costs against ordinary memory on the same CPUs; nothing where only one was measured."""
    if not found["overheads"]:
        return None
    columns = [
        *(Column("series", "series"), Column("threads", "threads", "count")),
        *(Column(kernel, kernel, "percent_tenths") for kernel in KERNELS),
    ]
    rows = [{**item, **item["shares"], "series": item["series"] or "pool"} for item in found["overheads"]]
    note = "Below zero the pool was faster: that is how far two runs of the same thing lie apart."
    return Table(columns, rows, "App-Direct overhead, share of the volatile bandwidth", note)


def published(found: GroupDoc) -> Table:
    """The published series of a group."""
    counts = sorted({int(count) for series in found["published"] for count in series["triad_gb_s"]})
    columns = [
        *(Column("name", "series"), Column("mode", "mode")),
        *(Column(str(count), count_text(count, "thread"), "tenths") for count in counts),
        Column("here", "here"),
    ]
    return Table(
        columns,
        [_published_row(series) for series in found["published"]],
        f"Published, group {found['group']}: {found['title']}; Triad, GB/s (App-Direct overhead)",
        f"{found['source']}. Overhead against the volatile series of the same threads and memory.",
    )


def _published_row(series: PublishedSeriesDoc) -> Row:
    figures = {count: _figure(series, count) for count in series["triad_gb_s"]}
    return {**series, **figures, "here": "" if series["measured_here"] else "not this machine"}


def _figure(series: PublishedSeriesDoc, count: str) -> str:
    share = f" ({series['overheads'][count]:.0%})" if count in series["overheads"] else ""
    return f"{series['triad_gb_s'][count]:.1f}{share}"


def _name(run: StreamRunDoc) -> str:
    where = "pool" if run["mode"] == "app-direct" else "volatile"
    return f"{run['series']}: {where}" if run["series"] else where


def _durability(found: StreamDoc) -> str:
    if found["pool"] is None:
        return "No pool was measured."
    how = {
        "none": "Nothing was made durable in the timed part.",
        "flush": f"Every kernel's output was made durable by {found['durability']} in the timed part.",
        "transaction": f"Every kernel was a transaction over its output, durable by {found['durability']}.",
    }
    keeper = "libpmemobj" if found["backend"] == "pmdk" else "our own format"
    return f"The pool ({found['pool']}) is kept by {keeper}. {how[found['persist']]}"
