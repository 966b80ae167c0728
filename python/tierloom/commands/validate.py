"""``tierloom validate``: predicted against measured times, on this machine."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tierloom.arguments import name_list
from tierloom.commands import next_command, options, say
from tierloom.errors import RequestError
from tierloom.program import THREADS_VARIABLE
from tierloom.readers import reading
from tierloom.units import bandwidth_gb_s

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tierloom.schema import ValidationRowDoc
    from tierloom.validation import Validation


@click.command(
    name="validate",
    context_settings=options.THROUGH,
    epilog=options.examples(
        "tierloom validate --machine here.toml -- sort --parallel=1 -o sorted.txt numbers.txt",
        "tierloom validate --machine here.toml --threads 1 --neighbours 1GB/s -- sort -o sorted.txt numbers.txt",
    ),
)
@click.option(
    "--machine", "-m", metavar="M", help="This machine, measured; the last `tierloom machine measure` by default."
)
@click.option("--threads", metavar="N,N", help="Numbers of threads to run with; the first one is profiled.")
@click.option(
    "--neighbours",
    metavar="GB/s,GB/s",
    help="Run them beside threads, too, that read near memory at these rates, from other cores.",
)
@click.option(
    "--placements",
    metavar="A,B",
    help="Run them with their data placed so, too: policies as `tierloom plan --policies` has them, such as "
    "bind:NODE,interleave.",
)
@options.nodes
@click.option(
    "--sizes",
    metavar="A,B",
    help="Run CMD with each of these for {size} in it, such as ./app {size}; each is profiled by itself.",
)
@click.option(
    "--ablate",
    metavar="A,B",
    help="Run CMD with each of these objects always in the cache, too, so that its results are wrong; all: each that "
    "is waited for.",
)
@click.option(
    "--variable",
    metavar="NAME",
    default=THREADS_VARIABLE,
    show_default=True,
    help="What tells the program its threads.",
)
@click.option("--runs", type=click.IntRange(min=1), default=3, show_default=True, metavar="N", help="Runs to measure.")
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
    machine: str | None,
    threads: str | None,
    neighbours: str | None,
    placements: str | None,
    nodes: tuple[str, ...],
    sizes: str | None,
    ablate: str | None,
    variable: str,
    runs: int,
    programs: Path | None,
    plot: Path | None,
    as_json: bool,
    command: tuple[str, ...],
) -> None:
    """Profile CMD, run it without the profiler, too, and compare predicted with measured times.

    Each program is profiled once, with the first number of threads and its data where first touch puts it. What the
    profile predicts for every number of threads and every placement stands beside what runs took, with its range, how
    far runs are from each other, and what the model says that does not know the profiled run. CMD runs several times,
    so it must be able to; its output goes nowhere but in the profiled run. Let nothing else run.
    """
    from tierloom.validation import DISTURBED, validate

    if placements is None:
        options.refuse_idle(["nodes"], "without --placements")
    commands = [list(command)] if command else []
    if programs is not None:
        commands += listed(programs)
    if not commands:
        raise click.MissingParameter(param_hint="'-- CMD…'", param_type="argument")
    with say.program_output(to_stderr=True), say.progress_bar("validating") as tell:
        found = validate(
            commands,
            machine=machine,
            threads=numbers(threads),
            neighbours=rates(neighbours),
            placements=name_list(placements) or [],
            nodes=options.node_numbers(nodes),
            sizes=name_list(sizes) or [],
            ablate=name_list(ablate) or [],
            runs=runs,
            variable=variable,
            progress=tell,
        )
    if plot:
        draw(found, plot)
    if as_json:
        say.document("validation", {**found.data})
    else:
        from tierloom.report.tables import validations

        say.show(*validations.tables(found))
    warn(found, variable)
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
    from tierloom.units import percent_text
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


def numbers(text: str | None) -> list[int] | None:
    """`1,2,4` as numbers.

    Raises:
        RequestError: One of them is none.
    """
    if text is None:
        return None
    words = [word.strip() for word in text.split(",")]
    if wrong := [word for word in words if not word.isdecimal() or int(word) == 0]:
        message = (
            f"--threads {text}: `{wrong[0]}` is no number of threads\nhint: write numbers with commas, such as 1,2"
        )
        raise RequestError(message)
    return [int(word) for word in words]


def rates(text: str | None) -> list[float]:
    """`5GB/s,10GB/s` as numbers, in GB/s.

    Raises:
        RequestError: One of them is none.
    """
    words = [word.strip() for word in text.split(",")] if text else []
    found = [bandwidth_gb_s(word) or 0.0 for word in words]
    for word, rate in zip(words, found, strict=True):
        if rate == 0.0:
            message = f"--neighbours {word}: write traffic as 5GB/s\nhint: several with commas, such as 5GB/s,10GB/s"
            raise RequestError(message)
    return found
