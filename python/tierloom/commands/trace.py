"""``tierloom trace``: access traces of other tools, for the simulator."""

from __future__ import annotations

from pathlib import Path

import click

from tierloom.commands import next_command, occupied, options, say
from tierloom.commands.function_options import of
from tierloom.commands.groups import Group


@click.group(
    name="trace",
    cls=Group,
    epilog=options.examples(
        "tierloom trace import lackey.txt -o app.npy --format lackey",
        "tierloom trace import lackey.txt -o app.npy --format lackey --llc 1MiB --json",
    ),
)
def verb() -> None:
    """Import access traces."""


@verb.command(
    name="import",
    epilog=options.examples(
        "tierloom trace import lackey.txt -o app.npy --format lackey",
        "tierloom trace import lackey.txt -o app.npy --format lackey --llc 1MiB",
    ),
)
@click.argument("source", type=options.FILE, metavar="FILE")
@options.output("File to write; FILE with .npy by default.")
@click.option(
    "--format",
    "kind",
    type=click.Choice(["lackey", "drmemtrace"]),
    required=True,
    help="What wrote it: valgrind --tool=lackey --trace-mem=yes, or drmemtrace's -tool view.",
)
@of("migration_simulator:import_trace", llc="SIZE")
@options.as_json
def import_(source: Path, output: Path | None, kind: str, llc: str | None, as_json: bool) -> None:
    """Turn a text trace (or one packed by gzip) into a file that `simulate --trace` reads."""
    from tierloom.migration_simulator import import_trace

    target = occupied.named(output, str(source.with_suffix(".npy")), "trace")
    with say.progress(f"reading {source}"):
        lines, accesses = import_trace(source, target, kind, llc=llc)
    if as_json:
        say.document("trace", {"lines": lines, "accesses": accesses, "output": str(target)})
    else:
        say.show(f"{lines:,} lines, {accesses:,} accesses")
    say.wrote("trace", target)
    say.then(next_command.tierloom("simulate", "--trace", target, "--machine", "liu-a"))
