"""The command line: one file a verb, and here the group that lists them and ends them.

A verb reads nouns, asks an engine or an instrument, and hands the answer to ``tierloom.report``.
Data goes to stdout, words to stderr; a ``TierloomError`` becomes words and its class's exit code,
never a traceback.
"""

from __future__ import annotations

import importlib
from typing import Any

import click

from tierloom import __version__
from tierloom.commands import next_command, say, streams
from tierloom.commands.groups import Group
from tierloom.commands.terminal import visible
from tierloom.errors import RequestError, TierloomError

SECTIONS: dict[str, dict[str, str]] = {
    "See it work": {
        "demo": "Profile a multigrid solver here, plan its data for a CXL machine, show what it gains.",
        "doctor": "Try what Tierloom needs on this machine, and say what to do about what is missing.",
    },
    "Know a machine": {
        "machine": "List, show, measure and import machines, and write new ones, every figure with its origin.",
    },
    "Know a program, place its data": {
        "profile": "Run CMD unchanged and find its data objects and how they are touched.",
        "recording": "Show what a recording holds, and take it to another machine.",
        "analyse": "Work a recording out into a profile, here or on another machine.",
        "plan": "Choose where each data object should live, and write it as a plan.",
        "run": "Run CMD with its objects placed as a plan says, and report where they really ended up.",
        "apply": "Move the objects of a running program to where another plan wants them.",
        "validate": "Profile CMD, run it without the profiler, too, and compare predicted with measured times.",
    },
    "Let pages move": {
        "simulate": "Run a program's page accesses on a machine while a policy moves its pages.",
        "trace": "Import access traces.",
    },
    "Give a GPU more memory": {
        "expand": "Simulate a GPU whose data is larger than its memory, over CXL, UVM or GPUDirect storage.",
    },
    "Serve and train language models": {
        "offload": "Place an LLM's tensors over GPU and host memory tiers: which where, what batch, how fast.",
    },
    "Work on data that does not fit": {
        "capacity": "Say what more memory does for a job that spills, and what it costs.",
    },
    "Ask many questions at once": {
        "sweep": "Compute every point of a study: a verb, what varies, and how to choose the points.",
    },
    "Keep data over a crash": {
        "pmem": "Make, show, check, repair and measure persistent pools.",
    },
    "Look at results": {
        "report": "Show any results on one page that needs no network: charts, each with its data as a table.",
        "diff": "Show what changed from A to B: two profiles, or two results that one verb printed under --json.",
        "reproduce": "Hold the published claims of five studies of CXL memory against our models.",
    },
    "Try it without the hardware": {
        "lab": "Run commands in a virtual machine with CXL or far memory: no root, no hardware.",
    },
}
"""Verbs by purpose, each with the first sentence of its help: it is the command ``verb`` in the module
``tierloom.commands.NAME``, and listing it must not take loading that."""


class Verbs(Group):
    """Loads a verb when it is asked for, lists verbs by purpose, and turns errors into exit codes."""

    def main(self, *args: Any, **how: Any) -> Any:  # noqa: ANN401 (click's signature)
        """Runs the command line, with standard streams that a verb need not think of."""
        streams.prepare()
        with streams.delivered():
            return super().main(*args, **how)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keeps what was typed: a verb may say how to type it again."""
        next_command.keep_typed(ctx, args)
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 (click's signature)
        """All verbs, in the order of the help text."""
        return [name for verbs in SECTIONS.values() for name in verbs]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The verb's command; none when there is no such verb."""
        if cmd_name not in self.list_commands(ctx):
            return None
        command: click.Command = importlib.import_module(f"tierloom.commands.{cmd_name}").verb
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The verb that is named; click would look for near ones among those that are loaded."""
        verbs = self.list_commands(ctx)
        if args[0] not in verbs:
            import difflib

            if near := difflib.get_close_matches(args[0], verbs):
                message = f"No such command '{args[0]}'. Did you mean {' or '.join(map(repr, near))}?"
                raise click.UsageError(message, ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 (click's)
        """Lists the verbs under their purposes."""
        for section, verbs in SECTIONS.items():
            self.write_section(formatter, section, verbs)

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 (click's signature)
        """Runs the verb; the one place where an error of ours becomes words."""
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            raise click.UsageError(visible(error.format_message()), error.ctx) from error
        except TierloomError as error:
            say.error(str(error))
            ctx.exit(error.exit_code)
        except OSError as error:
            if error.filename is None:
                raise
            say.error(f"{error.filename}: {error.strerror}\nhint: check that its folder exists and may be written")
            ctx.exit(RequestError.exit_code)


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__)
def main() -> None:
    """Where should each piece of my data live, and how fast will my program then run?

    Profile a program, then plan its data for a machine with several kinds of memory:

    \b
      $ tierloom profile -o app.profile -- ./app
      $ tierloom plan app.profile --machine liu-a
    """  # noqa: D301 (click reads the backspace)
