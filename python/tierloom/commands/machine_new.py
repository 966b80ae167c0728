"""``tierloom machine new``: the file of a machine that somebody thinks of, from one line or by questions."""

from __future__ import annotations

import json
import re
from pathlib import Path

import click

from tierloom.catalog import one_line
from tierloom.commands import options, say
from tierloom.errors import MachineError
from tierloom.nouns import Machine

FILE = click.Path(path_type=Path, dir_okay=False)
NAME = re.compile(r'^name = ".*"$', re.MULTILINE)


@click.command(
    name="new",
    epilog=options.examples(
        'tierloom machine new "dram 512GiB 100ns 300GB/s, cxl 1TiB 250ns 60GB/s" --name planned',
        'tierloom machine new "64 cores, dram 1TiB, hbm 64GiB" --name bright -o bright.toml',
    ),
)
@click.argument("line", metavar="[LINE]", required=False)
@click.option("--name", metavar="NAME", help="Name of the machine; made of the line by default.")
@click.option("-o", "--output", type=FILE, metavar="FILE", help="Machine file to write; NAME.toml by default.")
@options.as_json
def new(line: str | None, name: str | None, output: Path | None, as_json: bool) -> None:
    """Write the file of a machine that you think of.

    LINE names its memories: kind, size, and where you know them latency and bandwidth, as in "dram 512GiB 100ns
    300GB/s, cxl 1TiB 250ns 60GB/s". Without it you are asked. What you leave out is taken as usual for its kind,
    and the file says so of each figure. Edit it from there.
    """
    from tierloom.report.tables import machines

    described = Machine.load(line if line is not None and one_line.is_one_line(line) else _asked(line))
    machine = described if name is None else Machine(NAME.sub(f"name = {json.dumps(name)}", described.text, count=1))
    file = output or Path(f"{machine.name}.toml")
    machine.save(file)
    if as_json:
        say.document("machine", {**machine.data})
    else:
        say.show(*machines.summary(machine))
    say.wrote("machine", file)
    say.then(f"tierloom plan mg-e --machine {file}")


def _asked(line: str | None) -> str:
    """The line that answers make.

    Raises:
        MachineError: There is a line, but it names no memory.
    """
    if line is not None:
        message = f"`{line}` describes no machine\nhint: {one_line.FORM}"
        raise MachineError(message)
    cores = click.prompt("cores of its socket", default=one_line.CORES, type=click.IntRange(1, 9999), err=True)
    memories: list[str] = []
    while kind := click.prompt(_which(memories), default="" if memories else "dram", show_default=False, err=True):
        size = click.prompt("  size, such as 512GiB", err=True)
        latency = click.prompt("  idle latency in ns (none: as usual)", default="", show_default=False, err=True)
        bandwidth = click.prompt("  read bandwidth in GB/s (none: as usual)", default="", show_default=False, err=True)
        figures = [_with(latency, "ns"), _with(bandwidth, "GB/s")]
        part = " ".join(filter(None, [kind.strip().lower(), size.replace(" ", ""), *figures]))
        try:
            one_line.to_toml(", ".join([*memories, part]))
        except MachineError as problem:
            say.warn(str(problem))
            continue
        memories.append(part)
    return ", ".join([f"{cores} cores", *memories])


def _which(memories: list[str]) -> str:
    kinds = ", ".join(one_line.KINDS)
    return f"another memory ({kinds}; none when all are named)" if memories else f"a memory ({kinds}) [dram]"


def _with(figure: str, unit: str) -> str:
    figure = figure.strip().removesuffix(unit).strip()
    return f"{figure}{unit}" if figure else ""
