"""``tierloom lab``: a virtual machine with several kinds of memory, to try all of this on."""

from __future__ import annotations

import functools
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tierloom import lab
from tierloom.commands import options, say
from tierloom.commands.groups import Group
from tierloom.lab import qemu

if TYPE_CHECKING:
    from collections.abc import Callable

    from tierloom.lab import LabResult
    from tierloom.lab.standing_guest import Standing


@dataclass(frozen=True)
class Wanted:
    """The machine that was asked for; the arguments are those of :func:`tierloom.lab.run`."""

    topology: str
    memory: str | None
    share: tuple[Path, ...]
    store: Path | None
    pmem_mode: str
    accelerator: str


MACHINE = (
    click.option(
        "--topology",
        type=click.Choice(list(lab.TOPOLOGIES)),
        default="two-tier",
        show_default=True,
        help="; ".join(f"{name}: {each.about}" for name, each in lab.TOPOLOGIES.items()) + ".",
    ),
    click.option("--memory", metavar="SIZES", help="Sizes of its nodes, DRAM first: 1GiB,2GiB."),
    click.option(
        "--share",
        multiple=True,
        type=click.Path(path_type=Path, exists=True, file_okay=False),
        metavar="DIR",
        help="A folder that it may write beside the current one; may be given again.",
    ),
    click.option(
        "--store",
        type=click.Path(path_type=Path, file_okay=False),
        metavar="DIR",
        help="Folder that keeps what a persistent device holds (cxl-pmem).",
    ),
    click.option(
        "--pmem",
        "pmem_mode",
        type=click.Choice(["fsdax", "devdax"]),
        default="fsdax",
        show_default=True,
        help="What a new persistent device becomes: a file system on /mnt/pmem0, or /dev/dax0.0.",
    ),
    click.option(
        "--accel",
        "accelerator",
        type=click.Choice(qemu.ACCELERATORS),
        default="tcg",
        show_default=True,
        help="Software emulation works everywhere; kvm where you may use it, and without CXL.",
    ),
)


def machine(function: Callable[..., Any]) -> Callable[..., Any]:
    """Options of a guest, handed over as ``wanted``: the same for one command and for one that stays."""

    @functools.wraps(function)
    def gathered(*words: object, **given: Any) -> Any:  # noqa: ANN401 (click's own types)
        wanted = Wanted(**{each.name: given.pop(each.name) for each in fields(Wanted)})
        return function(*words, wanted=wanted, **given)

    for option in reversed(MACHINE):
        gathered = option(gathered)
    return gathered


def command_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """How one command is run in a guest."""
    function = click.option("--stdin", is_flag=True, help="Let CMD read this command's standard input.")(function)
    return click.option(
        "--timeout",
        "timeout_s",
        type=click.FloatRange(min=1),
        default=lab.TIMEOUT_S,
        show_default=True,
        metavar="S",
        help="Seconds that CMD may take.",
    )(function)


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
@machine
@command_options
@options.as_json
@options.program
@click.pass_context
def run(
    ctx: click.Context, wanted: Wanted, timeout_s: float, stdin: bool, as_json: bool, command: tuple[str, ...]
) -> None:
    """Start a guest, run CMD in it, and end it: CMD's output and exit code are passed on."""
    typed = sys.stdin.buffer.read() if stdin else None
    with ExitStack() as spinner:
        spinner.enter_context(say.progress(f"a {wanted.topology} machine starts and runs {command[0]}"))

        def sink(stream: str, data: bytes) -> None:
            spinner.close()
            pass_on(stream, data)

        asked = None if as_json else sink
        result = lab.run(command, timeout_s=timeout_s, stdin=typed, sink=asked, **vars(wanted))
    end(ctx, result, as_json=as_json)


@verb.command(
    name="up", epilog=options.examples("tierloom lab up", "tierloom lab up --topology cxl --memory 2GiB,1GiB")
)
@machine
@options.as_json
def up(wanted: Wanted, as_json: bool) -> None:
    """Start a guest that stays, for `tierloom lab ssh`."""
    from tierloom.lab import standing_guest
    from tierloom.lab.topology import named

    with say.progress(f"a {wanted.topology} machine starts"):
        guest = standing_guest.up(
            named(wanted.topology).sized(wanted.memory),
            shares=[Path.cwd(), *wanted.share],
            store=wanted.store,
            pmem_mode=wanted.pmem_mode,
            accelerator=wanted.accelerator,
        )
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
