"""``tierloom machine import`` and ``export``: machines in the formats of others."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import click

from tierloom import outputs
from tierloom.commands import next_command, occupied, options, say
from tierloom.commands.function_options import of
from tierloom.errors import RequestError
from tierloom.nouns import Machine


@click.command(
    name="import",
    epilog=options.examples(
        "tierloom machine import liu-a.xml --name again", "tierloom machine import / --name here -o here.toml --json"
    ),
)
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE…")
@options.output("Machine file to write; NAME.toml by default.")
@of(
    "machine_formats:import_machine",
    name="NAME",
    cores=("N", {"type": click.IntRange(min=1)}),
    nodes=("--node N=KIND:SIZE", {"multiple": True}),
    ghz=("F", {"type": click.FloatRange(min=0.1, max=20)}),
)
@options.as_json
def import_(
    sources: tuple[str, ...],
    output: Path | None,
    nodes: tuple[str, ...],
    as_json: bool,
    **asked: Any,  # noqa: ANN401 (as `import_machine` takes it)
) -> None:
    """Make a machine file of what others have written about a machine.

    SOURCE is a folder with a machine's proc and sys (/ is this machine), or the archive of one that
    hwloc-gather-topology packed, an XML file of hwloc, the JSON that cxl list -M -R -X prints, a log of Intel
    MLC, or a curve directory of the Mess benchmark. Several describe one machine, the later ones on top:
    first who knows the nodes and cores, then who measured. 0:2=curves says that curves or loaded latencies
    are those from the CPUs of node 0 to the memory of node 2. Nothing is measured.
    """
    from tierloom.machine_formats import import_machine
    from tierloom.report.tables import machines

    found = import_machine(sources, nodes=dict(map(node, nodes)), **asked)
    file = occupied.named(output, f"{found.machine.name}.toml", "machine")
    found.machine.save(file)
    if as_json:
        say.document("machine-import", {"machine": found.machine.data, "warnings": found.warnings})
    else:
        say.show(*machines.summary(found.machine))
    say.doubts(found.warnings)
    say.wrote("machine", file)
    say.then(next_command.tierloom("machine", "show", file, "--sources"))


def node(text: str) -> tuple[int, str]:
    """Reads ``2=cxl:128GiB``.

    Raises:
        RequestError: It is not of that form.
    """
    found = re.fullmatch(r"(\d{1,4})=(\w+(?::.+)?)", text)
    if not found:
        message = f"`{text}` does not say what a node is\nhint: write for example 2=cxl:128GiB"
        raise RequestError(message)
    return int(found[1]), found[2]


@click.command(
    name="export",
    epilog=options.examples(
        "tierloom machine export liu-a --hwloc -o liu-a.xml", "tierloom machine export liu-a --toml -o mine.toml"
    ),
)
@click.argument("name", metavar="NAME")
@click.option("--hwloc", "form", flag_value="hwloc", required=True, help="As XML of hwloc with memory attributes.")
@click.option("--toml", "form", flag_value="toml", help="As a machine file of Tierloom's, to edit.")
@options.output("File to write; standard output by default.")
def export(name: str, form: str, output: Path | None) -> None:
    """Write a machine in another program's format, or as a file to edit: NAME is a catalog name or a machine file.

    The XML has the latency and bandwidth of every path, where firmware tells hwloc the nearest ones at
    most. Look at it with `lstopo -i FILE --memattrs`; programs read it through HWLOC_XMLFILE.
    """
    from tierloom.machine_formats import to_hwloc

    machine = Machine.load(name)
    if output is not None:
        occupied.refuse_others(output, "machine" if form == "toml" else "hwloc topology")
    text = machine.text if form == "toml" else to_hwloc(machine)
    if output is None:
        say.text(text)
        return
    outputs.write(output, text)
    if form == "toml":
        say.wrote("machine", output)
        say.then(next_command.tierloom("machine", "show", output, "--sources"))
    else:
        say.wrote("hwloc topology", output)
        say.then(shlex.join(["lstopo", "-i", str(output), "--memattrs"]))
