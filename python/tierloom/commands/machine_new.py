"""``tierloom machine new``: the file of a machine that somebody thinks of, from one line or by questions."""

from __future__ import annotations

import re
from pathlib import Path

import click

from tierloom.catalog import one_line
from tierloom.commands import next_command, options, say
from tierloom.errors import MachineError, RequestError
from tierloom.nouns import Machine

NAMED = re.compile(r'^name = ".*"$', re.MULTILINE)
NAME = re.compile(r"\w[\w.+-]*")


@click.command(
    name="new",
    epilog=options.examples(
        'tierloom machine new "dram 512GiB 100ns 300GB/s, cxl 1TiB 250ns 60GB/s" --name planned',
        'tierloom machine new "64 cores, dram 1TiB, hbm 64GiB" --name bright -o bright.toml',
    ),
)
@click.argument("line", metavar="[LINE]", required=False)
@click.option("--name", metavar="NAME", help="Name of the machine; made of the line by default.")
@options.output("Machine file to write; NAME.toml by default.")
@options.as_json
def new(line: str | None, name: str | None, output: Path | None, as_json: bool) -> None:
    """Write the file of a machine that you think of.

    LINE names its memories: kind, size, and where you know them latency and bandwidth, as in "dram 512GiB 100ns
    300GB/s, cxl 1TiB 250ns 60GB/s". Behind a semicolon stand those of another socket. Without it you are asked. What
    you leave out is taken as usual for its kind, and the file says so of each figure. Edit it from there.
    """
    from tierloom.report.tables import machines

    if name is not None and not NAME.fullmatch(name):
        message = f"--name {name}: no name of a machine\nhint: use letters, digits, and . + - _"
        raise RequestError(message)
    described = Machine.load(line if line is not None and one_line.is_one_line(line) else _asked(line))
    machine = described if name is None else Machine(NAMED.sub(f'name = "{name}"', described.text, count=1))
    file = output or Path(f"{machine.name}.toml")
    if file.exists():
        message = f"{file}: it is there already, and may have been edited\nhint: choose another file with -o"
        raise RequestError(message)
    machine.save(file)
    if as_json:
        say.document("machine", {**machine.data})
    else:
        say.show(*machines.summary(machine))
    say.tell(*(f"note: {note}" for note in machine.data.get("notes", [])))
    say.wrote("machine", file)
    say.then(next_command.tierloom("plan", "mg-e", "--machine", file))


def _asked(line: str | None) -> str:
    """The line that answers make.

    Raises:
        MachineError: There is a line, but it names no memory.
    """
    if line is not None:
        message = f"`{line}` describes no machine\nhint: {one_line.FORM}"
        raise MachineError(message)
    parts = _cores()
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
    return ", ".join([*parts, *memories])


def _cores() -> list[str]:
    """The line's first part, where the number of cores is known."""
    while cores := click.prompt(
        f"cores of its socket (none: {one_line.CORES})", default="", show_default=False, err=True
    ):
        if re.fullmatch(r"[1-9]\d{0,3}", cores):
            return [f"{cores} cores"]
        say.warn(f"`{cores}` is no number of cores\nhint: write a whole number up to 9999, or nothing")
    return []


def _which(memories: list[str]) -> str:
    kinds = ", ".join(one_line.kinds())
    return f"another memory ({kinds}; none when all are named)" if memories else f"a memory ({kinds}) [dram]"


def _with(figure: str, unit: str) -> str:
    figure = figure.strip().removesuffix(unit).strip()
    return f"{figure}{unit}" if figure else ""
