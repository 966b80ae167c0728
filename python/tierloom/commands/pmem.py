"""``tierloom pmem``: pools of arrays in memory that survives."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tierloom.commands import next_command, options, say
from tierloom.commands.function_options import of
from tierloom.commands.pmem_stream import stream
from tierloom.commands.pool_command import Pools, folder_exists
from tierloom.errors import PoolError

if TYPE_CHECKING:
    from tierloom.pmem.choices import Backend

NO_REPAIR = "only you know what is still of use: remove such arrays (Pool.remove), or restore the file from a copy"

POOL = click.argument("path", metavar="POOL", type=click.Path(path_type=Path))


@click.group(
    name="pmem",
    cls=Pools,
    epilog=options.examples("tierloom pmem create state.pool 64MiB", "tierloom pmem check state.pool"),
)
def verb() -> None:
    """Make, show, check, repair and measure persistent pools.

    A pool is a file of named NumPy arrays with transactions; programs use it through
    tierloom.pmem.Pool. On persistent memory (a DAX file system, /dev/dax0.0) a commit needs no system
    call; elsewhere `msync` makes data durable.
    """


verb.add_command(stream)


@verb.command(
    name="create",
    epilog=options.examples(
        "tierloom pmem create field.pool 64MiB", "tierloom pmem create large.pool 256MiB --log 128MiB"
    ),
)
@POOL
@click.argument("size", metavar="SIZE")
@of("pmem.pools:Pool.create", log="SIZE", backend=("", {"show_default": False}))
def create(path: Path, size: str, log: str | None, backend: Backend) -> None:
    """Make a pool of SIZE in a new file, or on a DAX device."""
    from tierloom.pmem import Pool

    folder_exists(path)
    with Pool.create(path, size, log=log, backend=backend):
        pass
    say.wrote("pool", path)
    say.then(next_command.tierloom("pmem", "show", path))


@verb.command(
    name="show", epilog=options.examples("tierloom pmem show state.pool", "tierloom pmem show state.pool --json")
)
@POOL
@options.as_json
def show(path: Path, as_json: bool) -> None:
    """Show a pool's arrays and how full it is; nothing is changed, and the file need not be writable."""
    from tierloom.pmem import look
    from tierloom.report.tables import pools

    seen = look(path)
    if as_json:
        say.document("pool", {**seen})
        return
    say.show(pools.arrays(seen))
    if seen["unfinished_ranges"]:
        say.tell(
            f"note: a transaction over {seen['unfinished_ranges']} ranges was cut off; shown is the state before it"
        )


@verb.command(
    name="check", epilog=options.examples("tierloom pmem check state.pool", "tierloom pmem check state.pool --json")
)
@POOL
@options.as_json
@click.pass_context
def check_(ctx: click.Context, path: Path, as_json: bool) -> None:
    """Look for damage without changing anything; the exit code is 1 where there is some."""
    from tierloom.pmem import check

    problems = check(path)
    damaged = any(problem["damage"] for problem in problems)
    if as_json:
        say.document("pool-check", {"damaged": damaged, "problems": problems})
    else:
        for problem in problems:
            say.show(f"{'damage' if problem['damage'] else 'note'}: {problem['what']}")
        if not problems:
            say.show(f"{path}: a sound pool")
        if any(problem["damage"] and problem["repairable"] for problem in problems):
            say.then(next_command.tierloom("pmem", "repair", path))
    ctx.exit(1 if damaged else 0)


@verb.command(
    name="repair", epilog=options.examples("tierloom pmem repair state.pool", "tierloom pmem repair state.pool --json")
)
@POOL
@options.as_json
def repair_(path: Path, as_json: bool) -> None:
    """Make a damaged pool one that opens; make a copy of the file first."""
    from tierloom.pmem import check, repair

    problems = repair(path)
    left = [problem for problem in check(path) if problem["damage"]]
    if as_json:
        say.document("pool-repair", {"repaired": problems, "problems": left})
    else:
        for problem in problems:
            say.show(f"was: {problem['what']}")
        say.show(f"{path}: {'repaired' if problems else 'there was nothing to repair'}")
    if left:
        message = f"{path}: {'; '.join(problem['what'] for problem in left)}\nhint: {NO_REPAIR}"
        raise PoolError(message)
