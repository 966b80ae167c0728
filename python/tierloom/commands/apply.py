"""``tierloom apply``: move the objects of a running program to where another plan wants them."""

from __future__ import annotations

import click

from tierloom.commands import next_command, options, say


@click.command(
    name="apply",
    epilog=options.examples(
        "tierloom apply --pid $(cat app.pid) --plan sort.plan.toml",
        "tierloom apply --pid $(cat app.pid) --plan sort.plan.toml --json",
    ),
)
@click.option("--pid", required=True, type=click.IntRange(min=1), help="Process id of a program under `tierloom run`.")
@click.option("--plan", "plan_file", required=True, metavar="FILE", help="Plan that `tierloom plan` wrote.")
@options.nodes
@options.as_json
def verb(pid: int, plan_file: str, nodes: tuple[str, ...], as_json: bool) -> None:
    """Move the objects of a running program to where another plan wants them.

    The program must run under `tierloom run`, with whatever plan. Pages that are there are moved one by
    one; what the program allocates from now on goes by the new plan, too.
    """
    from tierloom import plan_runner
    from tierloom.nouns import Plan
    from tierloom.report.tables import runs

    plan = Plan.load(plan_file)
    with say.progress(f"moving pages of process {pid}"):
        applied = plan_runner.apply(pid, plan, nodes=options.node_numbers(nodes))
    if as_json:
        say.document("applied", {**applied})
    else:
        say.show(runs.applied(applied))
        say.then(next_command.apply(applied, plan_file))
