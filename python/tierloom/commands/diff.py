"""``tierloom diff``: what changed between two profiles or two results."""

from __future__ import annotations

import click

from tierloom.commands import next_command, options, say


@click.command(
    name="diff",
    epilog=options.examples(
        "tierloom diff bt-e sp-e",
        "tierloom diff bt-e bt-e --check --json",
    ),
)
@click.argument("a")
@click.argument("b")
@click.option("--check", is_flag=True, help="End with 1 when anything changed beyond uncertainty.")
@options.as_json
@click.pass_context
def verb(ctx: click.Context, a: str, b: str, check: bool, as_json: bool) -> None:
    """Show what changed from A to B: two profiles, or two results that one verb printed under --json.

    What has a 95 % interval, waiting and accesses, has changed when the two runs' intervals cannot be chance.
    Other numbers have changed when they differ.
    """
    from tierloom import differences
    from tierloom.report.tables import differences as report

    found = differences.diff(a, b)
    if as_json:
        say.document("difference", report.document(found))
    else:
        say.show(report.shown(found, a, b))
        say.then(next_command.diff(found))
    if check and found.changed:
        ctx.exit(1)
