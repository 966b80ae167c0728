"""``tierloom run``: run a program with its objects placed as a plan says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from tierloom.commands import next_command, options, profile_names, say
from tierloom.commands.function_options import of

if TYPE_CHECKING:
    from tierloom.nouns import Plan
    from tierloom.schema import RunDoc


@click.command(
    name="run",
    context_settings=options.THROUGH,
    epilog=options.examples(
        "tierloom run --plan sort.plan.toml -- sort --parallel=1 numbers.txt",
        "tierloom run --plan sort.plan.toml --json -- sort --parallel=1 numbers.txt",
    ),
)
@click.option("--plan", "plan_file", required=True, metavar="FILE", help="Plan that `tierloom plan` wrote.")
@options.nodes
@of("plan_runner:run", hold="", hint_faults="--hint-faults/--no-hint-faults", set_host_weights="")
@click.option(
    "--watch",
    "watch_s",
    type=click.FloatRange(min=0.1),
    metavar="SECONDS",
    help="Show where pages are while CMD runs, every so many seconds.",
)
@options.as_json
@options.program
@click.pass_context
def verb(
    ctx: click.Context,
    /,
    plan_file: str,
    nodes: tuple[str, ...],
    watch_s: float | None,
    as_json: bool,
    command: tuple[str, ...],
    **asked: Any,  # noqa: ANN401 (as `plan_runner.run` takes it)
) -> None:
    """Run CMD with its objects placed as a plan says, and report where they really ended up.

    CMD keeps its input, output and exit code; the report goes to stderr. Under --json CMD's output
    goes to stderr too, so that stdout holds the report and nothing else.
    """
    from tierloom import plan_runner
    from tierloom.nouns import Plan
    from tierloom.report.program_endings import ended
    from tierloom.report.tables import runs

    plan = Plan.load(plan_file)
    with say.program_output(to_stderr=as_json):
        report = plan_runner.run(
            plan,
            command,
            nodes=options.node_numbers(nodes),
            **asked,
            watch=None if watch_s is None else (watch_s, lambda seen: say.tell(runs.snapshot(seen))),
        )
    following = None
    if as_json:
        say.document("run", {**report})
    else:
        following = show(plan, plan_file, report, command, nodes)
    say.tell(ended(report))
    for warning in report["warnings"]:
        say.warn(warning["text"])
    say.then(following)
    ctx.exit(report["exit_code"])


def show(plan: Plan, plan_file: str, report: RunDoc, command: tuple[str, ...], nodes: tuple[str, ...]) -> str | None:
    """What came of a plan on stderr: a sentence, then tables. Returns the command that fits it."""
    from tierloom import lab, measured_hosts, profiler
    from tierloom.profile_folder import ENDING
    from tierloom.report import verdicts
    from tierloom.report.tables import runs

    host, ran = profiler.this_host() or None, profile_names.default_name(command).removesuffix(ENDING)
    is_elsewhere = measured_hosts.is_elsewhere(plan.data["machine"], host, plan.data.get("memories", []))
    where = {"is_in_lab": lab.is_guest(), "is_elsewhere": is_elsewhere}
    say.tell(verdicts.came_of(plan, report, **where, ran=ran), *runs.outcomes(plan, report))
    at = next_command.Place(
        is_of_another=verdicts.has_rules(report) and verdicts.is_of_another(plan, report, ran),
        is_here=verdicts.not_there(plan, report, **where) is None,
        here=measured_hosts.kept(host),
        nodes=nodes,
    )
    return next_command.run(plan, plan_file, report, command, at)
