"""``tierloom plan``: compare every policy, choose one, write a plan."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tierloom import outputs
from tierloom.commands import next_command, occupied, options, plan_files, say
from tierloom.commands.function_options import of
from tierloom.errors import RequestError

if TYPE_CHECKING:
    from tierloom import exporters
    from tierloom.nouns import Plan
    from tierloom.policy_search import Comparison
    from tierloom.schema import MachineDoc


MACHINES = "`tierloom machine list` has names; `tierloom machine measure` writes the file of this machine"
"""Where somebody finds a machine to plan for."""
EMIT = "Print the plan for another tool instead: a shell script, or C with a function an object."


@click.command(
    name="plan",
    epilog=options.examples(
        "tierloom plan mg-e --machine liu-a --threads 32 --fast-memory 64GiB",
        "tierloom plan mg-e --machine liu-a --threads 32 --max-slowdown 5% --html mg.html",
    ),
)
@click.argument("profile", metavar="PROFILE")
@options.machine_or_none
@options.threads
@options.socket
@options.memories
@options.fast_memory
@of("policy_search:plan", max_slowdown="SHARE", policies="A,B")
@options.ran_on
@of("policy_search:plan", what_if=("CHANGE", {"multiple": True}))
@options.output("Plan to write; NAME.plan.toml by default.")
@click.option("--html", type=options.Drawn("report"), metavar="FILE", help="Write a report of one page.")
@options.plot("the frontier")
@of("exporters:emit", form=("--emit", {"required": False, "help": EMIT}))
@options.as_json
def verb(
    profile: str,
    machine: str | None,
    what_if: tuple[str, ...],
    output: Path | None,
    html: Path | None,
    plot: Path | None,
    form: exporters.Form | None,
    as_json: bool,
    **asked: Any,  # noqa: ANN401 (as `policy_search.plan` takes it)
) -> None:
    """Choose where each data object should live, and write it as a plan.

    PROFILE is a folder that `tierloom profile` wrote, or a profile of the catalog. With --emit it may
    also be a plan that was written before; then nothing is planned again and no machine is needed.
    """
    from tierloom import exporters, policy_search
    from tierloom.nouns import Machine, Plan, Profile

    if form and as_json:
        message = "--emit prints a program and --json a document\nhint: ask for one of them"
        raise RequestError(message)
    if form and profile.endswith(".toml"):
        say.text(exporters.emit(Plan.load(profile), form))
        return
    if machine is None:
        raise click.MissingParameter(MACHINES, param_hint="'--machine' / '-m'", param_type="option")
    program, as_it_is = Profile.load(profile), Machine.load(machine)
    plan_file = occupied.named(output, f"{program.name}.plan.toml", "plan")
    ask = partial(policy_search.plan, program, as_it_is, **asked)
    with say.progress("comparing policies"):
        answer = ask(what_if=what_if)
        before = ask() if what_if and not (form or as_json) else None
    written = save(answer, plan_file, html, plot)
    if form:
        say.text(exporters.emit(answer.plan(), form))
    elif as_json:
        say.document("comparison", {**answer.data})
    else:
        if before is not None:
            from tierloom.report import verdicts

            say.show(verdicts.changed(before, answer, what_if))
        show(answer)
    tell(answer, written)
    then(answer, profile, machine, plan_file)


def show(answer: Comparison) -> None:
    """The whole answer on stdout: a sentence, then tables."""
    from tierloom.report import verdicts
    from tierloom.report.tables import plans

    say.show(verdicts.verdict(answer))
    if run := verdicts.measured(answer):
        say.show(run)
    prediction = answer.chosen["prediction"]
    say.show(plans.policies(answer.brief), plans.first_places(answer), *plans.phases(prediction))
    say.show(plans.tiers(prediction["tiers"]), plans.frontier(answer))
    for assumption in prediction["assumptions"]:
        say.show(f"assumed: {assumption}")
    if doubt := verdicts.never_measured(answer):
        say.show(f"assumed: {doubt}")


def save(answer: Comparison, plan_file: Path, html: Path | None, plot: Path | None) -> dict[str, Path]:
    """Writes the plan and, where asked for, the report and the picture; says which."""
    written = {"plan": plan_file}
    if html:
        from tierloom.report.pages import html_file, sources

        outputs.write(html, html_file.render(sources.of_comparison(answer)))
        written["report"] = html
    if plot:
        from tierloom.report import picture
        from tierloom.report.pages import comparison

        picture.save(comparison.picture(answer), plot)
        written["frontier"] = plot
    if kept := plan_files.write(answer.plan(), plan_file):
        say.tell(f"{plan_file} was edited by hand, so it was kept as {kept}")
    return written


def tell(answer: Comparison, written: dict[str, Path]) -> None:
    """What to know before believing the numbers, and what was written."""
    from tierloom.catalog import one_line
    from tierloom.report import verdicts

    if not answer.profile.data["objects"]:
        say.warn(
            f"{answer.profile.name} has no data objects, so there is nothing to place; let the program run longer, or "
            "profile it under a higher --hz"
        )
    if doubt := verdicts.of_another_cache(answer):
        say.warn(doubt)
    if doubt := verdicts.doubtful_traffic(answer):
        say.warn(doubt)
    if unseen := verdicts.unseen_again(answer):
        named = f"{', '.join(unseen[: verdicts.NAMED])}{' and others' if len(unseen) > verdicts.NAMED else ''}"
        say.warn(
            f"`run` cannot find {named} again: a mapping has no name in the running program, and nobody saw its "
            "allocation; profile it with `tierloom profile -- CMD` where it runs"
        )
    if answer.machine.data["sockets"][0]["cpu"] == one_line.ANY_CPU:
        say.tell(*(f"note: {note}" for note in answer.machine.data.get("notes", [])))
    for what, path in written.items():
        say.wrote(what, path)


def then(answer: Comparison, profile: str, machine: str, plan_file: Path) -> None:
    """What to do next: run it, or profile it so that it can be run.

    Where all data fit, it is to ask what half of that memory would do, beside another.
    """
    from tierloom.nouns import Machine
    from tierloom.report import verdicts

    if "sampling" not in answer.profile.data or not answer.profile.footprint_bytes:
        return
    if verdicts.all_fits(answer):
        alone = len(answer.machine.data["memories"]) < 2
        other, asked = (Machine.load("liu-a"), "liu-a") if alone else (answer.machine, machine)
        nodes = beside(other.data, "ldram" if alone else answer.brief["fast_memory"])
        say.then(next_command.tierloom("plan", profile, "--machine", asked, *nodes, "--fast-memory", "50%"))
        return
    plan, command = answer.plan(), answer.profile.data["program"]["command"]
    ruled = [rule["object"] for rule in plan.data.get("rules", [])]
    if ruled and set(ruled) <= {*verdicts.unseen_again(answer)}:
        say.then(next_command.tierloom("profile", "--", *command))
    else:
        run(plan, plan_file, command)


def beside(machine: MachineDoc, fast: str) -> list[str]:
    """The option that leaves the fast memory and the first of another kind; nothing where there are no others."""
    kinds = {memory["name"]: memory["kind"] for memory in machine["memories"]}
    other = next((name for name, kind in kinds.items() if kind != kinds[fast]), None)
    return ["--nodes", f"{fast},{other}"] if other and len(kinds) > 2 else []


def run(plan: Plan, plan_file: Path, command: list[str]) -> None:
    """The command that runs a program under a plan on this machine, with the nodes that nothing here tells."""
    from tierloom import node_match

    given = node_match.nodes_to_give(plan)
    nodes = [word for memory, node in given.items() for word in ("--node", f"{memory}={node}")]
    say.then(next_command.tierloom("run", "--plan", plan_file, *nodes, "--", *command))
    if node_match.is_rehearsal(plan, node_match.match_nodes(plan, given)):
        say.tell(
            f"a rehearsal: this machine has not all memories of {plan.data['machine']}, so other nodes stand for them"
        )
