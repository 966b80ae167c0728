"""Commands about one pool: whatever goes wrong names the pool's file and ends with what to do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tierloom.commands.groups import Group
from tierloom.errors import PoolError, RequestError

HINTS = {
    "No such file": "check the path; `tierloom pmem create` makes a pool",
    "Is a directory": "give the file of a pool, not its folder",
    "Read-only file system": "this verb writes: copy the pool to a file system that may be written",
    "Permission denied": "`show` and `check` need the right to read the file, `repair` to write it too",
}
SOUND = "check that it is the file of a pool, and that it is whole"


class PoolCommand(click.Command):
    """A command with the argument `path`."""

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 (click's signature)
        """Runs it; adds the file's name and a hint to an error that lacks them."""
        path = ctx.params.get("path")
        try:
            return super().invoke(ctx)
        except PoolError as problem:
            if isinstance(path, Path):
                raise PoolError(_told(path, str(problem))) from problem
            raise


class Pools(Group):
    """The group of those commands."""

    command_class = PoolCommand


def _told(path: Path, text: str) -> str:
    what, _, hint = text.partition("\nhint:")
    named = what if str(path) in what else f"{path}: {what}"
    better = next((each for sign, each in HINTS.items() if sign in what), None)
    return f"{named}\nhint: {better or hint.strip() or SOUND}"


def folder_exists(path: Path) -> None:
    """Refuses a new file whose folder is not there.

    Raises:
        RequestError: There is no such folder.
    """
    if not path.parent.is_dir():
        message = f"{path}: there is no folder {path.parent}\nhint: make the folder first, or choose another"
        raise RequestError(message)
