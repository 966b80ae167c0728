"""``tierloom report``: results, machines, profiles and plans as one HTML page."""

from __future__ import annotations

from pathlib import Path

import click

from tierloom import outputs
from tierloom.commands import next_command, options, say


@click.command(
    name="report",
    epilog=options.examples(
        "tierloom report liu-a mg-e -o mg.html",
        "tierloom report liu-b xsbench-xl -o xs.html --title 'Cross sections on server B' --json",
    ),
)
@click.argument("what", nargs=-1, required=True, metavar="WHAT…")
@click.option(
    "-o",
    "--output",
    type=options.Written("report"),
    default=Path("report.html"),
    metavar="FILE",
    show_default=True,
    help="Page to write.",
)
@click.option("--title", metavar="TEXT", help="Title of the page; what it shows by default.")
@options.as_json
def verb(what: tuple[str, ...], output: Path, title: str | None, as_json: bool) -> None:
    """Show any results on one page that needs no network: charts, each with its data as a table.

    WHAT is a file that a verb wrote or printed under --json, a profile's folder, a folder with such files,
    a machine or profile of the catalog, or - for stdin. What is given together is shown together: a plan's
    section knows the sizes of a profile's objects that is given too.
    """
    from tierloom.report.pages import html_file, sources

    with say.progress("drawing"):
        read = sources.read(what)
        page = html_file.page_of(read, title)
    outputs.write(output, page.html)
    if as_json:
        say.document(
            "report",
            {"report": str(output), "title": page.title, "bytes": len(page.html.encode()), "sections": page.contents},
        )
    for doubt in page.doubts:
        say.warn(doubt)
    say.wrote(f"report of {', '.join(section['title'] for section in page.contents)}", output)
    if not as_json:
        say.then(next_command.report(output))
