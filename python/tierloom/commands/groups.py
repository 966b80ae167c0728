"""Groups of commands, as all of ours list them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Mapping

WHOLE = 1000
"""Letters of a first sentence that are shown: all, on as many lines as it takes."""


class Group(click.Group):
    """Lists its commands with whole first sentences, where click would cut them off at the end of the line."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """One section with all commands."""
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        told = {name: command.get_short_help_str(WHOLE) for name, command in commands if command}
        self.write_section(formatter, "Commands", told)

    def write_section(self, formatter: click.HelpFormatter, section: str, told: Mapping[str, str]) -> None:
        """A title, and a line or more for each command: its name and its first sentence."""
        with formatter.section(section):
            formatter.write_dl([*told.items()])
