"""Tables of STREAM: ours, what a pool costs, and what was published."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tierloom.report.tables.layout import noted, table
from tierloom.units import bytes_text

if TYPE_CHECKING:
    from tierloom.pmem.documents import GroupDoc, PublishedSeriesDoc, StreamDoc, StreamRunDoc
    from tierloom.report.tables.layout import Table

KERNELS = ("copy", "scale", "add", "triad")


def rates(found: StreamDoc) -> Table:
    """Every run, best of its rounds, with the pool's overhead beside it."""
    made = table(
        f"STREAM, GB/s, arrays of {bytes_text(found['array_bytes'])}",
        ("memory", "left"),
        ("threads", "right"),
        *((kernel, "right") for kernel in KERNELS),
        ("published triad", "right"),
    )
    for run in found["runs"]:
        cells = [f"{run['rates'][kernel]['best_gb_s']:.2f}" for kernel in KERNELS]
        published = run["published_triad_gb_s"]
        made.add_row(_name(run), str(run["threads"]), *cells, "" if published is None else f"{published:.1f}")
    return noted(made, f"Best of the rounds, as STREAM counts bytes. {_durability(found)}")


def overheads(found: StreamDoc) -> Table | None:
    """What the pool costs against ordinary memory on the same CPUs; nothing where only one was measured."""
    if not found["overheads"]:
        return None
    made = table(
        "App-Direct overhead, share of the volatile bandwidth",
        ("series", "left"),
        ("threads", "right"),
        *((kernel, "right") for kernel in KERNELS),
    )
    for item in found["overheads"]:
        cells = [f"{item['shares'][kernel]:.1%}" for kernel in KERNELS]
        made.add_row(item["series"] or "pool", str(item["threads"]), *cells)
    return noted(made, "Below zero the pool was faster: that is how far two runs of the same thing lie apart.")


def published(found: GroupDoc) -> Table:
    """The published series of a group."""
    counts = sorted({int(count) for series in found["published"] for count in series["triad_gb_s"]})
    made = table(
        f"Published, group {found['group']}: {found['title']}; Triad, GB/s (App-Direct overhead)",
        ("series", "left"),
        ("mode", "left"),
        *((f"{count} thread" + "s" * (count > 1), "right") for count in counts),
        ("here", "left"),
    )
    for series in found["published"]:
        cells = [_figure(series, str(count)) for count in counts]
        made.add_row(series["name"], series["mode"], *cells, "" if series["measured_here"] else "not this machine")
    return noted(made, f"{found['source']}. Overhead against the volatile series of the same threads and memory.")


def _figure(series: PublishedSeriesDoc, count: str) -> str:
    if count not in series["triad_gb_s"]:
        return ""
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
