"""``tierloom analyse``: the profile of a recording that was kept."""

from __future__ import annotations

from pathlib import Path

import click

from tierloom.commands import occupied, options, say
from tierloom.commands.function_options import of
from tierloom.commands.profile import show_profile


@click.command(
    name="analyse",
    epilog=options.examples(
        "tierloom analyse gzip.recording -o gzip.profile",
        "tierloom analyse gzip.recording --binaries gzip.binaries --json",
    ),
)
@click.argument("recording", type=options.FILE, metavar="RECORDING")
@options.output_folder("Folder to write; RECORDING's name with .profile by default.", or_file=True)
@of("recordings:analyse", counts=("FILE", {"type": options.FILE, "multiple": True}))
@options.binaries
@options.as_json
def verb(
    recording: Path, output: Path | None, counts: tuple[Path, ...], binaries: tuple[Path, ...], as_json: bool
) -> None:
    """Work a recording out into a profile, here or on another machine.

    `tierloom profile --keep RECORDING` writes one. The profile is the same as there: it is made of the recording
    and of the files of code that ran, in the builds that ran. Another build of the program is refused; of a
    library, it is a warning, and samples in it are [unrecovered].

    With --counts, executions are what valgrind counted, and no estimates; counts of another build are refused.
    `profile --count --keep RECORDING` keeps them beside it (RECORDING.callgrind.out.*).
    """
    from tierloom import recordings

    folder = occupied.named(output, f"{recording.name.removesuffix(recordings.ENDING)}.profile", "profile")
    with say.progress(f"analysing {recording}"):
        recorded = recordings.analyse(
            recording, name=folder.name.removesuffix(".profile"), binaries=binaries, counts=counts
        )
    recorded.save(folder)
    show_profile(recorded, folder, as_json=as_json)
