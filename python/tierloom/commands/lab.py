"""``tierloom lab``: a virtual machine with several kinds of memory, to try all of this on."""

from __future__ import annotations

import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tierloom import lab
from tierloom.commands import options, say
from tierloom.commands.function_options import of
from tierloom.commands.groups import Group
from tierloom.lab import qemu

if TYPE_CHECKING:
    from collections.abc import Callable

    from tierloom.lab import LabResult
    from tierloom.lab.standing_guest import Standing


TOPOLOGIES = "; ".join(f"{name}: {each.about}" for name, each in lab.TOPOLOGIES.items()) + "."

GUEST = of(
    "lab:run",
    topology=("", {"type": click.Choice(list(lab.TOPOLOGIES)), "help": TOPOLOGIES}),
    memory="SIZES",
    share=(
        "DIR",
        {"multiple": True, "type": click.Path(path_type=Path, exists=True, file_okay=False)},
    ),
    store=("DIR", {"type": click.Path(path_type=Path, file_okay=False)}),
    pmem_mode=("--pmem", {"type": click.Choice(["fsdax", "devdax"])}),
    accelerator=("--accel", {"type": click.Choice(qemu.ACCELERATORS)}),
)
"""Options of a guest: the same for one command and for one that stays."""


def command_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """How one command is run in a guest."""
    function = click.option("--stdin", is_flag=True, help="Let CMD read this command's standard input.")(function)
    return of("lab:run", timeout_s=("--timeout S", {"type": click.FloatRange(min=1)}))(function)


@click.group(
    name="lab",
    cls=Group,
    epilog=options.examples("tierloom lab run -- numactl --hardware", "tierloom lab run --topology cxl -- daxctl list"),
)
def verb() -> None:
    """Run commands in a virtual machine with CXL or far memory: no root, no hardware.

    It runs a stock kernel in QEMU and sees this host's programs and files at their own paths; it can
    write only the current folder. Where pages land in it is real; how long things take is not.
    """


@verb.command(
    name="run",
    context_settings=options.THROUGH,
    epilog=options.examples("tierloom lab run -- numactl --hardware", "tierloom lab run --topology cxl -- daxctl list"),
)
@GUEST
@command_options
@options.as_json
@options.program
@click.pass_context
def run(
    ctx: click.Context,
    /,
    topology: str,
    stdin: bool,
    as_json: bool,
    command: tuple[str, ...],
    **asked: Any,  # noqa: ANN401 (as `lab.run` takes it)
) -> None:
    """Start a guest, run CMD in it, and end it: CMD's output and exit code are passed on."""
    typed = sys.stdin.buffer.read() if stdin else None
    with ExitStack() as spinner:
        spinner.enter_context(say.progress(f"a {topology} machine starts and runs {command[0]}"))

        def sink(stream: str, data: bytes) -> None:
            spinner.close()
            pass_on(stream, data)

        result = lab.run(command, topology=topology, stdin=typed, sink=None if as_json else sink, **asked)
    end(ctx, result, as_json=as_json)


@verb.command(
    name="up", epilog=options.examples("tierloom lab up", "tierloom lab up --topology cxl --memory 2GiB,1GiB")
)
@GUEST
@options.as_json
def up(topology: str, memory: str | None, share: tuple[Path, ...], as_json: bool, **asked: Any) -> None:  # noqa: ANN401 (as `lab.run` takes it)
    """Start a guest that stays, for `tierloom lab ssh`."""
    from tierloom.lab import standing_guest
    from tierloom.lab.topology import named

    with say.progress(f"a {topology} machine starts"):
        guest = standing_guest.up(named(topology).sized(memory), shares=[Path.cwd(), *share], **asked)
    if as_json:
        say.document("guest", describe(guest))
    else:
        say.tell(f"a {guest.topology} machine is up; it may write {', '.join(guest.shares)}")
    say.then("tierloom lab ssh -- numactl --hardware")


@verb.command(
    name="ssh",
    context_settings=options.THROUGH,
    epilog=options.examples("tierloom lab ssh -- numactl --hardware", "tierloom lab ssh --json -- uname -r"),
)
@command_options
@options.as_json
@click.argument("command", nargs=-1, metavar="[-- CMD…]", type=click.UNPROCESSED)
@click.pass_context
def ssh(ctx: click.Context, timeout_s: float, stdin: bool, as_json: bool, command: tuple[str, ...]) -> None:
    """Run CMD in the guest that is up; without CMD, a shell on its serial line.

    There is no network and no ssh daemon: commands go through a shared folder. Ctrl-] leaves the shell.
    """
    from tierloom.lab import standing_guest, terminal

    guest = standing_guest.need()
    if not command:
        terminal.attach(guest.shell)
        return
    result = guest.run(
        command,
        timeout_s=timeout_s,
        stdin=sys.stdin.buffer.read() if stdin else None,
        sink=None if as_json else pass_on,
    )
    end(ctx, result, as_json=as_json)


@verb.command(name="down", epilog=options.examples("tierloom lab down", "tierloom lab down --json"))
@options.as_json
def down(as_json: bool) -> None:
    """End the guest that is up."""
    from tierloom.lab import standing_guest

    standing_guest.down()
    if as_json:
        say.document("guest", {"up": False})
    else:
        say.tell("the guest is down")


@verb.command(name="status", epilog=options.examples("tierloom lab status", "tierloom lab status --json"))
@options.as_json
def status(as_json: bool) -> None:
    """Say whether a guest is up, and which."""
    from tierloom.lab import standing_guest

    guest = standing_guest.status()
    if as_json:
        say.document("guest", describe(guest) if guest else {"up": False})
    elif guest:
        say.show(
            f"a {guest.topology} machine has been up for {time.time() - guest.since:.0f} s "
            f"(process {guest.pid}); it may write {', '.join(guest.shares)}"
        )
    else:
        say.show("no guest is up")


@verb.command(name="image", epilog=options.examples("tierloom lab image", "tierloom lab image --json"))
@click.option("--update", is_flag=True, help="Fetch newer packages where the distribution has some.")
@options.as_json
def image_(update: bool, as_json: bool) -> None:
    """Fetch the guest's packages and build its image, as the first start would."""
    from tierloom.lab import image
    from tierloom.lab.guest import cache_folder

    with say.progress("packages are fetched and unpacked"):
        emulator = qemu.find()
        built = image.build(cache_folder(), update=update)
    if as_json:
        version = ".".join(map(str, emulator.version))
        say.document("lab-image", {"folder": str(built.folder), "packages": {**built.versions}, "qemu": version})
        return
    say.show(f"kernel {built.kernel_version}, {len(built.versions)} packages, {built.folder}")


def describe(guest: Standing) -> dict[str, object]:
    """The document of a guest that is up."""
    return {"up": True, "topology": guest.topology, "pid": guest.pid, "since": guest.since, "shares": [*guest.shares]}


def end(ctx: click.Context, result: LabResult, *, as_json: bool) -> None:
    """Passes a command's exit code on, and under --json its output too."""
    if as_json:
        say.document("lab-command", vars(result))
    ctx.exit(result.exit_code)


def pass_on(stream: str, data: bytes) -> None:
    """A command's output goes where ours goes, as it comes."""
    out = sys.stdout if stream == "stdout" else sys.stderr
    out.buffer.write(data)
    out.buffer.flush()
