"""``tierloom sweep``: many runs at once, on this machine's CPUs or on a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tierloom.commands import next_command, occupied, options, say
from tierloom.commands.function_options import of
from tierloom.errors import RequestError

if TYPE_CHECKING:
    from tierloom.sweeps import Study, Sweep


@click.command(
    name="sweep",
    epilog=options.examples("tierloom sweep cxl-share", "tierloom sweep card-to-buy --workers 1 -o cards --json"),
)
@click.argument("study", metavar="STUDY")
@options.output_folder("Folder for results; STUDY.sweep by default. What is in it is not computed again.")
@of(
    "sweeps.study_runner:sweep",
    workers=("--workers -j N", {"type": click.IntRange(min=0)}),
    scheduler="ADDRESS",
    retry_failed="",
)
@options.as_json
@click.pass_context
def verb(
    ctx: click.Context,
    /,
    study: str,
    output: Path | None,
    as_json: bool,
    **asked: Any,  # noqa: ANN401 (as `sweep` takes it)
) -> None:
    """Compute every point of a study: a verb, what varies, and how to choose the points.

    STUDY is a TOML file or a study of the catalog (cxl-share, card-to-buy, best-placement). Results go to
    DIR/results.parquet, a row a point. Stop it and start it again: it goes on where it was. The exit
    code is 2 when every point was refused, and 1 when a worker was lost for good.
    """
    from tierloom.report.tables import sweeps
    from tierloom.sweeps import Study

    points = Study.load(study)
    folder = occupied.named(output, f"{points.name}.sweep", "sweep")
    try:
        found = run(points, folder, **asked)
    except KeyboardInterrupt:
        say.warn(f"stopped; what was computed is in {folder}, and the same command goes on from there")
        ctx.exit(130)
    if as_json:
        say.document("sweep", found.data)
    else:
        say.show(*sweeps.summary(found))
    for axis in found.data["without_effect"]:
        column = found.data["objective"]["column"]
        say.warn(f"{axis} makes no difference here: {column} is the same at all of its values")
    say.wrote("a row a point", found.table)
    if found.counts["done"]:
        say.then(next_command.tierloom("report", folder))
    elif not found.counts["lost"]:
        say.error("every point was refused, for the reasons above\nhint: mend the study; what is asked cannot be")
        ctx.exit(RequestError.exit_code)
    ctx.exit(1 if found.counts["lost"] else 0)


def run(study: Study, folder: Path, **asked: Any) -> Sweep:  # noqa: ANN401 (as `sweep` takes it)
    """Runs the study behind a progress bar."""
    from tierloom.sweeps import sweep

    with say.progress_bar("starting workers") as tell:
        return sweep(study, folder, progress=lambda progress: progress.tell(tell), **asked)
