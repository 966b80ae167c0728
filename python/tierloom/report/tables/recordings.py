"""What a recording holds: its run, and its files of code."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from tierloom.report.tables.endings import ended
from tierloom.report.tables.layout import noted, table
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
    made = table(f"Recording of {' '.join(recording['command'])}", ("what", "left"), ("", "left", "key"))
    rate = f", {recording['hz']:.0f}/s of CPU time" if recording["event"] in {"cpu-clock", "ptrace"} else ""
    made.add_row("format", str(recording["format"]))
    made.add_row("processor", f"{recording['processor']}, {bytes_text(recording['llc_bytes'])} last-level cache")
    made.add_row("event", EVENTS[recording["event"]] + rate)
    made.add_row("time", f"{seconds_text(recording['wall_s'])}, {seconds_text(recording['cpu_s'])} of CPU time")
    made.add_row("samples", f"{recording['samples']:,}, {recording['lost_samples']:,} lost")
    made.add_row("allocations", f"{recording['allocations']:,} events, {recording['lost_allocations']:,} lost")
    made.add_row("page faults", f"{recording['page_faults']:,}")
    made.add_row("processes", f"{recording['processes']:,}")
    return noted(made, ended(recording) + ".")


def files(recording: RecordingDoc) -> RenderableType:
    """The files of code, those with most samples first."""
    made = table(
        "Files of code", ("file", "left"), ("build", "left"), ("samples", "right"), ("here", "left"), ("where", "left")
    )
    ordered = sorted(recording["binaries"], key=lambda file: (-file["samples"], file["path"]))
    for file in ordered:
        made.add_row(
            PurePosixPath(file["path"]).name,
            file["build"][:BUILD_LETTERS],
            f"{file['samples']:,}" if file["samples"] else "·",
            state_text(file),
            file.get("file", file["path"]),
        )
    lacking = sum(file["state"] != "same" for file in ordered)
    note = "all are here as they ran" if not lacking else f"{count_text(lacking, 'file')} not here as they ran"
    return noted(made, f"{count_text(len(ordered), 'file')}, {note}.")


def state_text(file: CodeFileDoc) -> str:
    """Whether a file of code is here as it ran."""
    return {"same": "yes", "rebuilt": "another build", "missing": "no"}[file["state"]]
