"""What a recording holds: its run, and its files of code."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from tierloom.columns import Column
from tierloom.report.program_endings import ended
from tierloom.report.table_layout.table import Table, facts
from tierloom.units import bytes_text, count_text, seconds_text

if TYPE_CHECKING:
    from rich.console import RenderableType

    from tierloom.schema import CodeFileDoc, RecordingDoc

EVENTS = {
    "cpu-clock": "CPU time, by perf_event_open",
    "ptrace": "CPU time, by ptrace",
    "memory-access": "memory accesses, by the processor",
    "none": "no samples",
}
BUILD_LETTERS = 16
"""Letters of a build id that a table shows; --json has them all."""


def summary(recording: RecordingDoc) -> tuple[RenderableType, ...]:
    """What was recorded, and whether the files of code are here as they ran."""
    return (run(recording), files(recording))


def run(recording: RecordingDoc) -> RenderableType:
    """The run, a line a fact."""
    rate = f", {recording['hz']:.0f}/s of CPU time" if recording["event"] in {"cpu-clock", "ptrace"} else ""
    told = {
        "format": str(recording["format"]),
        "processor": f"{recording['processor']}, {bytes_text(recording['llc_bytes'])} last-level cache",
        "event": EVENTS[recording["event"]] + rate,
        "time": f"{seconds_text(recording['wall_s'])}, {seconds_text(recording['cpu_s'])} of CPU time",
        "samples": f"{recording['samples']:,}, {recording['lost_samples']:,} lost",
        "allocations": f"{recording['allocations']:,} events, {recording['lost_allocations']:,} lost",
        "page faults": f"{recording['page_faults']:,}",
        "processes": f"{recording['processes']:,}",
    }
    title = f"Recording of {' '.join(recording['command'])}"
    return facts(title, told, f"{ended(recording)}.", what="what", form="text")


FILES = (
    *(Column("name", "file"), Column("build", "build"), Column("samples", "samples", "count")),
    *(Column("here", "here"), Column("file", "where")),
)


def files(recording: RecordingDoc) -> RenderableType:
    """The files of code, those with most samples first."""
    ordered = sorted(recording["binaries"], key=lambda file: (-file["samples"], file["path"]))
    rows = [
        {
            "name": PurePosixPath(file["path"]).name,
            "build": file["build"][:BUILD_LETTERS],
            "samples": file["samples"] or None,
            "here": state_text(file),
            "file": file.get("file", file["path"]),
        }
        for file in ordered
    ]
    lacking = sum(file["state"] != "same" for file in ordered)
    note = "all are here as they ran" if not lacking else f"{count_text(lacking, 'file')} not here as they ran"
    return Table(FILES, rows, "Files of code", f"{count_text(len(ordered), 'file')}, {note}.")


def state_text(file: CodeFileDoc) -> str:
    """Whether a file of code is here as it ran."""
    return {"same": "yes", "rebuilt": "another build", "missing": "no"}[file["state"]]
