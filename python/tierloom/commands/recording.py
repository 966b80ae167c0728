"""``tierloom recording``: what a recording holds, and the files of code that it takes."""

from __future__ import annotations

from pathlib import Path

import click

from tierloom.commands import next_command, options, say
from tierloom.commands.groups import Group
from tierloom.units import count_text


@click.group(
    name="recording",
    cls=Group,
    epilog=options.examples("tierloom recording show gzip.recording", "tierloom recording pack gzip.recording"),
)
def verb() -> None:
    """Show what a recording holds, and take it to another machine."""


@verb.command(
    name="show",
    epilog=options.examples(
        "tierloom recording show gzip.recording",
        "tierloom recording show gzip.recording --binaries gzip.binaries --json",
    ),
)
@click.argument("recording", type=options.FILE, metavar="RECORDING")
@options.binaries
@options.as_json
def show(recording: Path, binaries: tuple[Path, ...], as_json: bool) -> None:
    """Show what was recorded, and whether the files of code are here as they ran."""
    from tierloom import recordings
    from tierloom.report.tables import recordings as shown

    found = recordings.describe(recording, binaries=binaries)
    if as_json:
        say.document("recording", {**found})
        return
    say.show(*shown.summary(found))
    for warning in found["warnings"]:
        say.warn(warning["text"])


@verb.command(
    name="pack",
    epilog=options.examples(
        "tierloom recording pack gzip.recording", "tierloom recording pack gzip.recording -o gzip.binaries --json"
    ),
)
@click.argument("recording", type=options.FILE, metavar="RECORDING")
@options.output_folder("Folder to write; RECORDING's name with .binaries by default.")
@options.binaries
@options.as_json
def pack(recording: Path, output: Path | None, binaries: tuple[Path, ...], as_json: bool) -> None:
    """Copy the files of code that a recording takes into a folder.

    On another machine `tierloom analyse RECORDING --binaries DIR` then gives the same profile.
    """
    from tierloom import recordings
    from tierloom.report.tables import recordings as shown

    folder = output or Path(f"{recording.name.removesuffix(recordings.ENDING)}.binaries")
    packed = recordings.pack(recording, folder, binaries=binaries)
    if as_json:
        say.document("packed-recording", {"folder": str(folder), "copied": packed.copied, "lacking": packed.lacking})
    for file in packed.lacking:
        say.warn(f"{file['path']}: {shown.state_text(file)}; it was not copied")
    say.wrote(count_text(len(packed.copied), "file") + " of code", folder)
    say.then(next_command.tierloom("analyse", recording.name, "--binaries", folder.name))
