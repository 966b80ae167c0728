"""``tierloom machine``: what memory there is and what it costs to reach it."""

from __future__ import annotations

from pathlib import Path

import click

from tierloom.commands import next_command, occupied, options, say
from tierloom.commands.function_options import of
from tierloom.commands.groups import Group
from tierloom.commands.machine_files import export, import_
from tierloom.commands.machine_new import new
from tierloom.errors import RequestError
from tierloom.nouns import Machine


@click.group(
    name="machine",
    cls=Group,
    epilog=options.examples("tierloom machine list", "tierloom machine show liu-a"),
)
def verb() -> None:
    """List, show, measure and import machines, and write new ones, every figure with its origin."""


verb.add_command(new)
verb.add_command(import_)
verb.add_command(export)


@verb.command(name="list", epilog=options.examples("tierloom machine list", "tierloom machine list --json"))
@options.as_json
def list_(as_json: bool) -> None:
    """List the machines of the catalog."""
    from tierloom.report.tables import machines

    found = [Machine.load(name) for name in Machine.names()]
    if as_json:
        say.document("machines", {"machines": [{"name": m.name, "title": m.data["title"]} for m in found]})
        return
    say.show(machines.machine_list(found))
    say.then("tierloom machine show liu-a --sources")


@verb.command(
    name="show",
    epilog=options.examples("tierloom machine show liu-a", "tierloom machine show liu-a --plot liu-a.png"),
)
@click.argument("name", metavar="NAME")
@options.plot("its curves")
@click.option("--sources", is_flag=True, help="Say where every figure comes from and how it came about.")
@click.option("--toml", is_flag=True, help="Print it as a machine file, to edit.")
@options.as_json
def show(name: str, plot: Path | None, sources: bool, toml: bool, as_json: bool) -> None:
    """Show one machine: NAME is a catalog name or the path of a machine file."""
    from tierloom.report.tables import machines

    if toml and as_json:
        message = "--toml prints a machine file and --json a document\nhint: ask for one of them"
        raise RequestError(message)
    machine = Machine.load(name)
    if plot:
        from tierloom.report import picture
        from tierloom.report.pages import machine as page

        picture.save(page.picture(machine), plot)
    if as_json:
        say.document("machine", {**machine.data})
        return
    if toml:
        say.text(machine.text)
        return
    say.show(*machines.summary(machine))
    if sources:
        say.show(machines.origins(machine), machines.sources(machine))
    for note in machine.data.get("notes", []):
        say.show(f"note: {note}")
    if plot:
        say.wrote("loaded-latency curves", plot)
    say.then(next_command.tierloom("plan", "mg-e", "--machine", name))


@verb.command(
    name="measure",
    epilog=options.examples(
        "tierloom machine measure --quick", "tierloom machine measure --quick -o here.toml --name here --json"
    ),
)
@options.output("Machine file to write; NAME.toml by default.")
@of("measurement:measure", name="NAME", quick="")
@options.as_json
def measure_(output: Path | None, name: str | None, quick: bool, as_json: bool) -> None:
    """Measure this machine: run it while nothing else does.

    It takes some minutes, ten at most on a large machine; --quick takes less than one.

    Under --json the raw figures with their spread are printed; the machine file is written anyway.
    """
    from tierloom import measured_hosts
    from tierloom.measurement import host_name, measure
    from tierloom.report.tables import machines

    file = occupied.named(output, f"{name or host_name()}.toml", "machine")
    with say.progress_bar("measuring") as tell:
        measured = measure(name, quick=quick, progress=tell)
    measured.machine.save(file)
    measured_hosts.keep(measured.machine)
    if as_json:
        say.document("measurement", {**measured.data})
    else:
        say.show(*machines.summary(measured.machine))
    say.doubts(measured.warnings)
    say.wrote("machine", file)
    say.then(next_command.measure(file))
