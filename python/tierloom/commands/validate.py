"""``tierloom validate``: predicted against measured times, on this machine."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tierloom.commands import next_command, options, say
from tierloom.commands.function_options import of
from tierloom.errors import RequestError
from tierloom.readers import reading
from tierloom.units import percent_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tierloom.schema import ValidationRowDoc
    from tierloom.validation import Validation


VALIDATE = "validation:validate"


@click.command(
    name="validate",
    context_settings=options.THROUGH,
    epilog=options.examples(
        "tierloom validate --machine here.toml -- sort --parallel=1 -o sorted.txt numbers.txt",
        "tierloom validate --machine here.toml --threads 1 --neighbours 1GB/s -- sort -o sorted.txt numbers.txt",
    ),
)
@of(VALIDATE, machine="--machine -m M", threads="N,N", neighbours="GB/s,GB/s", placements="A,B")
@options.nodes
@of(
    VALIDATE,
    sizes="A,B",
    ablate="A,B",
    variable="NAME",
    runs=("N", {"type": click.IntRange(min=1)}),
    repeat=("N", {"type": click.IntRange(min=0)}),
)
@click.option(
    "--programs",
    type=options.FILE,
    metavar="FILE",
    help="Validate many programs: a file with a command a line; # begins a comment.",
)
@click.option("--plot", type=options.Drawn(), metavar="FILE", help="Draw the errors: .svg, .png or .pdf.")
@options.as_json
@click.argument("command", nargs=-1, metavar="-- CMD…", type=click.UNPROCESSED)
def verb(
    nodes: tuple[str, ...],
    programs: Path | None,
    plot: Path | None,
    as_json: bool,
    command: tuple[str, ...],
    **asked: Any,  # noqa: ANN401 (as `validate` takes it)
) -> None:
    """Profile CMD, run it without the profiler, too, and compare predicted with measured times.

    Each program is profiled once, with the first number of threads and its data where first touch puts it. What the
    profile predicts for every number of threads and every placement stands beside what runs took, with its range, how
    far runs are from each other, and what the model says that does not know the profiled run. CMD runs several times,
    so it must be able to; its output goes nowhere but in the profiled run. Let nothing else run.
    """
    from tierloom.validation import DISTURBED, validate

    if not asked["placements"]:
        options.refuse_idle(["nodes"], "without --placements")
    commands = [list(command)] if command else []
    if programs is not None:
        commands += listed(programs)
    if not commands:
        raise click.MissingParameter(param_hint="'-- CMD…'", param_type="argument")
    with say.program_output(to_stderr=True), say.progress_bar("validating") as tell:
        found = validate(commands, nodes=options.node_numbers(nodes), progress=tell, **asked)
    if plot:
        draw(found, plot)
    if as_json:
        say.document("validation", {**found.data})
    else:
        from tierloom.report.tables import validations

        say.show(*validations.tables(found))
    warn(found, asked["variable"])
    if not as_json:
        say.then(next_command.validate(found.data, DISTURBED))


def warn(found: Validation, variable: str) -> None:
    """What the reader should know before believing the rows, and what has none."""
    for row in found.data["rows"]:
        for doubt in doubts(row, variable):
            say.warn(doubt)
    for failure in found.data["failures"]:
        say.warn(f"left out: {failure['why']}")


def doubts(row: ValidationRowDoc, variable: str) -> Iterator[str]:
    """What the reader should know before believing a row."""
    from tierloom.validation import ASTRAY, DISTURBED

    program, placement = row["command"][0], row["placement"]
    if (others := row["others"]) is not None and others > DISTURBED:
        yield (
            f"others had {percent_text(others)} of this machine's processors while {program} ran: "
            "its times tell of them, too; let nothing else run"
        )
    if row["told"] is not None and row["threads"] > row["told"]:
        yield (
            f"{program} had {row['threads']} threads where {variable} told it {row['told']}: it does not "
            f"go by that, and is predicted with {row['threads']}"
        )
    if (row["elsewhere"] or 0.0) > ASTRAY:
        yield (
            f"{percent_text(row['elsewhere'] or 0.0)} of {program}'s pages were not where {placement} wants them: its "
            "times tell of that, too"
        )
    yield from (f"{program} under {placement}: {note}" for note in row["notes"])


def draw(found: Validation, plot: Path) -> None:
    """Draws predicted against measured times, and how far both are off."""
    from tierloom.report import picture
    from tierloom.report.pages import validation

    picture.save(validation.picture(found.data), plot)
    say.wrote("predicted and measured times", plot)


def listed(file: Path) -> list[list[str]]:
    """The commands of a file.

    Raises:
        RequestError: It cannot be read, or a line is no command.
    """
    commands = []
    with reading(file, "list of commands", "write a command a line, as in a shell"):
        lines = file.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines, 1):
        try:
            words = shlex.split(line, comments=True)
        except ValueError as error:
            message = f"{file}:{number}: {error}\nhint: write a command as in a shell, without pipes"
            raise RequestError(message) from error
        if words:
            commands.append(words)
    return commands
