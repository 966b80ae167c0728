"""The command line: one file a verb, and here the group that lists them and ends them.

A verb reads nouns, asks an engine or an instrument, and hands the answer to ``tierloom.report``.
Data goes to stdout, words to stderr; a ``TierloomError`` becomes words and its class's exit code,
never a traceback.
"""

from __future__ import annotations

import importlib
from typing import Any

import click

from tierloom.commands import say
from tierloom.commands.groups import Group
from tierloom.commands.terminal import visible
from tierloom.errors import RequestError, TierloomError

SECTIONS: dict[str, list[str]] = {
    "See it work": ["demo", "doctor"],
    "Know a machine": ["machine"],
    "Know a program, place its data": ["profile", "recording", "analyse", "plan", "run", "apply"],
    "Let pages move": ["simulate", "trace"],
    "Give a GPU more memory": ["expand"],
    "Serve and train language models": ["offload"],
    "Work on data that does not fit": ["capacity"],
    "Ask many questions at once": ["sweep"],
    "Keep data over a crash": ["pmem"],
    "Look at results": ["report", "diff", "reproduce"],
    "Try it without the hardware": ["lab"],
}
"""Verbs by purpose. Each is the command ``verb`` in the module ``tierloom.commands.NAME``."""


class Verbs(Group):
    """Loads a verb when it is asked for, lists verbs by purpose, and turns errors into exit codes."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 (click's signature)
        """All verbs, in the order of the help text."""
        return [name for names in SECTIONS.values() for name in names]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The verb's command; none when there is no such verb."""
        if cmd_name not in self.list_commands(ctx):
            return None
        command: click.Command = importlib.import_module(f"tierloom.commands.{cmd_name}").verb
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Lists the verbs under their purposes."""
        for section, names in SECTIONS.items():
            self.write_section(ctx, formatter, section, names)

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
@click.version_option(package_name="tierloom")
def main() -> None:
    """Where should each piece of my data live, and how fast will my program then run?

    Profile a program, then plan its data for a machine with several kinds of memory:

    \b
      $ tierloom profile -o app.profile -- ./app
      $ tierloom plan app.profile --machine liu-a
    """  # noqa: D301 (click reads the backspace)
