"""``tierloom plan``: compare every policy, choose one, write a plan."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from tierloom import emitting, outputs, planning
from tierloom.commands import options, say
from tierloom.emitting import FORMS
from tierloom.errors import RequestError
from tierloom.nouns import Machine, Plan, Profile
from tierloom.planning import Comparison
from tierloom.quantities import names_of
from tierloom.report import plans

FILE = click.Path(path_type=Path, dir_okay=False)


@click.command(
    name="plan",
    epilog=options.examples(
        "tierloom plan mg-e --machine liu-a --threads 32 --fast-memory 64GiB",
        "tierloom plan mg-e --machine liu-a --threads 32 --max-slowdown 5% --html mg.html",
    ),
)
@click.argument("profile", metavar="PROFILE")
@click.option("--machine", "-m", metavar="M", help="Machine: a name of `tierloom machine list`, or a file.")
@options.threads
@click.option("--socket", metavar="S", help="Socket where the threads run; the machine's first by default.")
@click.option("--nodes", metavar="A,B", help="Memories that may be used, separated by commas; all by default.")
@click.option(
    "--fast-memory", metavar="SIZE", help="Fast memory that may be used: 64GiB, or 50% of the program's data."
)
@click.option(
    "--max-slowdown", metavar="SHARE", help="Use the least fast memory that costs no more time than this: 5%."
)
@click.option("--policies", metavar="A,B", help="Policies to compare, such as interleave:ldram+cxl; all by default.")
@click.option("-o", "--output", type=FILE, metavar="FILE", help="Plan to write; NAME.plan.toml by default.")
@click.option("--html", type=options.Drawn(), metavar="FILE", help="Write a report of one page.")
@click.option("--plot", type=options.Drawn(), metavar="FILE", help="Draw the frontier: .png, .svg or .pdf.")
@click.option(
    "--emit",
    type=click.Choice(list(FORMS)),
    help="Print the plan for another tool instead: a shell script, or C with a function an object.",
)
@options.as_json
def verb(
    profile: str,
    machine: str | None,
    threads: int | None,
    socket: str | None,
    nodes: str | None,
    fast_memory: str | None,
    max_slowdown: str | None,
    policies: str | None,
    output: Path | None,
    html: Path | None,
    plot: Path | None,
    emit: str | None,
    as_json: bool,
) -> None:
    """Choose where each data object should live, and write it as a plan.

    PROFILE is a folder that `tierloom profile` wrote, or a profile of the catalog. With --emit it may
    also be a plan that was written before; then nothing is planned again and no machine is needed.
    """
    if emit and as_json:
        message = "--emit prints a program and --json a document\nhint: ask for one of them"
        raise RequestError(message)
    if emit and profile.endswith(".toml"):
        say.text(emitting.emit(Plan.load(profile), emit))
        return
    if machine is None:
        raise click.MissingParameter(param_hint="'--machine' / '-m'", param_type="option")
    program = Profile.load(profile)
    with say.progress("comparing policies"):
        answer = planning.plan(
            program,
            Machine.load(machine),
            threads=threads,
            socket=socket,
            nodes=names_of(nodes),
            fast_memory=fast_memory,
            max_slowdown=max_slowdown,
            policies=names_of(policies),
        )
    plan_file = output or Path(f"{program.name}.plan.toml")
    written = save(answer, plan_file, html, plot)
    if emit:
        say.text(emitting.emit(answer.plan(), emit))
    elif as_json:
        say.document({**answer.data})
    else:
        show(answer)
    tell(answer, plan_file, written)


def show(answer: Comparison) -> None:
    """The whole answer as tables on stdout."""
    prediction = answer.chosen["outcome"]["Ok"]
    say.show(plans.policies(answer), plans.places(answer), plans.tiers(prediction), plans.frontier(answer))
    for assumption in prediction["assumptions"]:
        say.show(f"assumed: {assumption}")


def save(answer: Comparison, plan_file: Path, html: Path | None, plot: Path | None) -> dict[str, Path]:
    """Writes the plan and, where asked for, the report and the picture; says which."""
    written = {"plan": plan_file}
    if html:
        from tierloom.report.pages import reading, writing

        outputs.write(html, writing.render(reading.of_comparison(answer)))
        written["report"] = html
    if plot:
        from tierloom.report import pictures

        pictures.save(pictures.frontier(answer), plot)
        written["frontier"] = plot
    answer.plan().save(plan_file)
    return written


def tell(answer: Comparison, plan_file: Path, written: dict[str, Path]) -> None:
    """What was written, and how to use it."""
    if not answer.profile.data["objects"]:
        say.warn(
            f"{answer.profile.name} has no data objects, so there is nothing to place; let the program run longer, or "
            "profile it under a higher --hz"
        )
    for what, path in written.items():
        say.wrote(what, path)
    if "sampling" in answer.profile.data:
        say.then(f"tierloom run --plan {plan_file} -- {shlex.join(answer.profile.data['program']['command'])}")
