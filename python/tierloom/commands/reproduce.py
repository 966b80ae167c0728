"""``tierloom reproduce``: what was published, side by side with what the models say."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tierloom import outputs
from tierloom.commands import options, say
from tierloom.units import count_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tierloom.published_claims import Claim, Result


@click.command(
    name="reproduce",
    epilog=options.examples(
        "tierloom reproduce --only fridman23 --plot figures",
        "tierloom reproduce --only liu24.hpc --only micron24.bandwidth --json",
    ),
)
@click.option(
    "--only", multiple=True, metavar="PATTERN", help="Claims by id or its start, as liu24.table3; `*` is any."
)
@click.option(
    "--plot",
    type=options.Drawn(folder=True),
    metavar="DIR",
    help="Draw each published figure with known points, as SVG.",
)
@click.option(
    "--markdown", type=options.FILE, metavar="FILE", help="Write the tables into a document, between its marks."
)
@click.option("--workers", type=click.IntRange(1, 1024), metavar="N", help="Processes; one a processor by default.")
@options.as_json
def verb(only: tuple[str, ...], plot: Path | None, markdown: Path | None, workers: int | None, as_json: bool) -> None:
    """Hold the published claims of five studies of CXL memory against our models.

    Inputs are what the models were given or fitted to; only numeric predictions count. One rule says how close
    ours has to come to what is printed. A claim that is missed says why. All take some minutes.
    """
    from tierloom.published_claims import claims
    from tierloom.report.tables import claims as shown

    results = run(claims(only), workers)
    drawn = draw(results, plot) if plot else []
    if markdown:
        page = markdown.read_text(encoding="utf-8") if markdown.exists() else ""
        outputs.write(markdown, shown.into_page(page, shown.markdown(results)))
        say.wrote("tables", markdown)
    if as_json:
        say.document("claims", shown.document(results))
    else:
        say.show(shown.tables(results))
    if plot and drawn:
        say.wrote(count_text(len(drawn), "figure"), plot)


def run(asked: Sequence[Claim], workers: int | None) -> list[Result]:
    """Computes ours, with a bar."""
    from tierloom.published_claims import reproduce

    start = time.monotonic()
    with say.progress_bar("reproducing") as bar:

        def tell(share: float, words: str) -> None:
            spent_s = time.monotonic() - start
            bar(share, spent_s * (1.0 - share) / share if share else None, words)

        return reproduce(asked, workers=workers, progress=tell)


def draw(results: Sequence[Result], folder: Path) -> list[Path]:
    """Draws the figures into a folder."""
    from tierloom.report import picture
    from tierloom.report.pages import claims as page
    from tierloom.report.tables import claims as shown

    outputs.folder(folder)
    paths = []
    for figure in page.pictures(shown.document(results)["claims"]):
        paths.append(folder / f"{figure.title}.svg")
        picture.save(figure, paths[-1])
    return paths
