"""``tierloom demo``: the whole way on a bundled program, in a minute."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tierloom import catalog, extras, outputs
from tierloom.commands import occupied, options, plan, say
from tierloom.errors import RecordingError
from tierloom.units import GIB, amount_in_bytes

if TYPE_CHECKING:
    from tierloom.nouns import Machine

PROGRAM = "mg"
PROGRAM_ARGUMENTS = ("--iterations", "40")


@click.command(
    name="demo", epilog=options.examples("tierloom demo", "tierloom demo --machine liu-a --fast-memory 25% -o quarter")
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("demo"),
    metavar="DIR",
    show_default=True,
    help="Folder for everything that is written.",
)
@click.option(
    "--machine", "-m", "machine_name", default="liu-a", show_default=True, metavar="M", help="Machine to plan for."
)
@click.option(
    "--threads",
    "-t",
    type=click.IntRange(min=1),
    default=32,
    show_default=True,
    metavar="N",
    help="Threads to plan for.",
)
@click.option("--fast-memory", default="40%", show_default=True, metavar="SIZE", help="Fast memory that may be used.")
@options.as_json
def verb(output: Path, machine_name: str, threads: int, fast_memory: str, as_json: bool) -> None:
    """Profile a multigrid solver here, plan its data for a CXL machine, show what it gains."""
    from tierloom import policy_search, profiler
    from tierloom.nouns import Machine
    from tierloom.report import verdicts
    from tierloom.report.tables import profiles

    machine = Machine.load(machine_name)
    amount_in_bytes(fast_memory, GIB)  # what cannot be is refused before anything runs
    refuse_others(output)
    outputs.folder(output)
    command = [str(program()), *PROGRAM_ARGUMENTS]
    folder = output / f"{PROGRAM}.profile"
    say.step(f"tierloom profile -o {folder} -- {PROGRAM} {' '.join(PROGRAM_ARGUMENTS)}")
    with say.progress("the program runs"), say.program_output(to_stderr=True):
        recorded = profiler.record(command, name=PROGRAM)
    recorded.save(folder)
    nodes = near_memories(machine)
    asked = f"--machine {machine.name} --nodes {','.join(nodes)} --threads {threads} --fast-memory {fast_memory}"
    say.step(f"tierloom plan {folder} {asked}")
    answer = policy_search.plan(recorded.profile, machine, threads=threads, nodes=nodes, fast_memory=fast_memory)
    plan_file = output / f"{PROGRAM}.plan.toml"
    drawn = (output / "report.html", output / "frontier.png") if can_draw() else (None, None)
    written = plan.save(answer, plan_file, *drawn)
    if as_json:
        say.document("demo", {"profile": recorded.profile.data, "comparison": answer.data})
    else:
        say.show(
            verdicts.waited(recorded.profile), profiles.objects(recorded.profile), *profiles.phases(recorded.profile)
        )
        plan.show(answer)
    plan.tell(answer, written)
    plan.then(answer, str(folder), machine.name, plan_file)


def refuse_others(folder: Path) -> None:
    """Refuses a folder in which files of others have names of ours."""
    names = {f"{PROGRAM}.profile": "profile", f"{PROGRAM}.plan.toml": "plan", "report.html": "report"}
    for name, kind in {**names, "frontier.png": "PNG picture"}.items():
        occupied.refuse_others(folder / name, kind)


def can_draw() -> bool:
    """Whether the packages that draw are there; the rest of the demo does without, and says so."""
    if lacking := extras.missing("report"):
        say.warn(f"no page and no picture: {', '.join(lacking)} not installed\nhint: pip install '.[report]'")
    return not lacking


def near_memories(machine: Machine) -> list[str]:
    """Memories of the socket where a program runs: its own DRAM and what else hangs on it."""
    home = machine.data["sockets"][0]["name"]
    return [memory["name"] for memory in machine.data["memories"] if memory["socket"] == home]


def program() -> Path:
    """The bundled program.

    Raises:
        RecordingError: It was not built with the package.
    """
    path = catalog.native_file(PROGRAM)
    if path is None or not os.access(path, os.X_OK):
        message = f"the demo's program `{PROGRAM}` is not beside the package\nhint: `make demo` builds it"
        raise RecordingError(message)
    return path
