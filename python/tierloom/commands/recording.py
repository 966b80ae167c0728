"""``tierloom recording``: what a recording holds, and the files of code that it takes."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from tierloom import kept
from tierloom.commands import options, say
from tierloom.commands.groups import Group
from tierloom.quantities import count_text
from tierloom.report import recordings

FILE = click.Path(path_type=Path, dir_okay=False)


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
@click.argument("recording", type=FILE, metavar="RECORDING")
@options.binaries
@options.as_json
def show(recording: Path, binaries: tuple[Path, ...], as_json: bool) -> None:
    """Show what was recorded, and whether the files of code are here as they ran."""
    found = kept.describe(recording, binaries=binaries)
    if as_json:
        say.document({**found})
        return
    say.show(*recordings.summary(found))
    for warning in found["warnings"]:
        say.warn(warning["text"])


@verb.command(
    name="pack",
    epilog=options.examples(
        "tierloom recording pack gzip.recording", "tierloom recording pack gzip.recording -o gzip.binaries --json"
    ),
)
@click.argument("recording", type=FILE, metavar="RECORDING")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Folder to write; RECORDING's name with .binaries by default.",
)
@options.binaries
@options.as_json
def pack(recording: Path, output: Path | None, binaries: tuple[Path, ...], as_json: bool) -> None:
    """Copy the files of code that a recording takes into a folder.

    On another machine `tierloom analyse RECORDING --binaries DIR` then gives the same profile.
    """
    folder = output or Path(f"{recording.name.removesuffix(kept.ENDING)}.binaries")
    packed = kept.pack(recording, folder, binaries=binaries)
    if as_json:
        say.document({"folder": str(folder), "copied": packed.copied, "lacking": packed.lacking})
    for file in packed.lacking:
        say.warn(f"{file['path']}: {recordings.state_text(file)}; it was not copied")
    say.wrote(count_text(len(packed.copied), "file") + " of code", folder)
    say.then(f"tierloom analyse {shlex.quote(recording.name)} --binaries {shlex.quote(folder.name)}")
