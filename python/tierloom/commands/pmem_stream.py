"""``tierloom pmem stream``: what keeping data in a pool costs, by STREAM."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tierloom.commands import options, say
from tierloom.commands.function_options import of
from tierloom.commands.pool_command import folder_exists
from tierloom.errors import RequestError
from tierloom.pmem import cpu_affinity, groups
from tierloom.units import amount_in_bytes

if TYPE_CHECKING:
    from tierloom.pmem.documents import GroupDoc, PublishedSeriesDoc, StreamDoc


PLAN = "pmem.stream:Plan"


@click.command(
    name="stream",
    epilog=options.examples(
        "tierloom pmem stream --pool /dev/shm --size 4MiB --persist flush",
        "tierloom pmem stream --group 1.a --pool /dev/shm --size 4MiB",
    ),
)
@of(PLAN, pool=("PATH", {"type": click.Path(path_type=Path), "required": False}))
@click.option(
    "--size", metavar="SIZE", help="Of each of three arrays; four times the caches by default, 800 MB at most."
)
@of(PLAN, rounds=("", {"type": click.IntRange(2, 100)}), persist="", backend="")
@click.option("--threads", metavar="N,N…", help="Numbers of threads; as many as CPUs by default.")
@click.option("--cpus", metavar="LIST", help="CPUs to use, such as 0-9; all by default.")
@click.option(
    "--affinity",
    type=click.Choice(cpu_affinity.AFFINITIES),
    default="close",
    show_default=True,
    help="Whether threads fill one socket first or take sockets in turn.",
)
@of(PLAN, node=("N", {"type": click.IntRange(min=0)}))
@click.option("--group", type=click.Choice(groups.names()), help="A published test group: its threads and its figures.")
@click.option(
    "--memory",
    type=click.Choice(groups.MEMORIES),
    default="dram",
    show_default=True,
    help="For --group: what the memory under test is.",
)
@click.option("--socket", type=int, metavar="S", help="For --group: the socket of the memory under test; the first.")
@options.as_json
def stream(
    pool: Path | None,
    size: str | None,
    threads: str | None,
    cpus: str | None,
    affinity: cpu_affinity.Affinity,
    group: str | None,
    memory: groups.Memory,
    socket: int | None,
    as_json: bool,
    **asked: Any,  # noqa: ANN401 (as `Plan` has it)
) -> None:
    """Measure STREAM in ordinary memory and on a pool, and what the pool costs.

    Copy, scale, add and triad over doubles, threads held on their CPUs, results checked. Run it while
    nothing else runs; the pool is removed afterwards.
    """
    from tierloom.pmem import stream as kernels

    refuse_idle(pool, group)
    if (node := asked["node"]) is not None and not (nodes := Path("/sys/devices/system/node")).joinpath(
        f"node{node}"
    ).is_dir():
        known = ", ".join(sorted(path.name.removeprefix("node") for path in nodes.glob("node[0-9]*"))) or "none"
        message = f"--node {node}: there is no such memory node\nhint: those of this machine: {known}"
        raise RequestError(message)
    if pool is not None and not pool.is_dir():
        folder_exists(pool)
    allowed = cpu_affinity.allowed()
    usable = cpu_affinity.chosen(cpus, allowed) if cpus else allowed
    elements = amount_in_bytes(size, 0) // 8 if size else kernels.default_elements()
    if elements < kernels.LEAST_ELEMENTS:
        message = f"--size {size}: an array has 8 KiB or more\nhint: take four times the last-level caches"
        raise RequestError(message)
    plan = kernels.Plan(pool, elements, **asked)
    if group:
        home = socket if socket is not None else cpu_affinity.sockets(usable)[0]
        steps = kernels.steps_of_group(group, memory, home, usable)
        steps = [step for step in steps if pool is not None or not step.in_pool]
    else:
        order = cpu_affinity.order(usable, affinity)
        steps = kernels.steps_of(_counts(threads, len(order)), order)
    with say.progress_bar("streaming") as tell:
        found = kernels.measure(plan, steps, tell)
    _tell(found, _group_document(group, found) if group else None, as_json=as_json)


def refuse_idle(pool: Path | None, group: str | None) -> None:
    """Options of a test group where there is none, of a pool where there is none, and the other way round.

    Raises:
        RequestError: One was given.
    """
    if pool is None:
        options.refuse_idle(["persist", "backend"], "without --pool")
    if group is None:
        options.refuse_idle(["memory", "socket"], "without --group")
    else:
        options.refuse_idle(["threads", "affinity"], "beside --group, which has its own")


def _tell(found: StreamDoc, beside: GroupDoc | None, *, as_json: bool) -> None:
    if as_json:
        say.document("stream", {**(beside or found)})
        return
    from tierloom.report.tables import streams

    if found["runs"]:
        say.show(streams.rates(found))
    costs = streams.overheads(found)
    if costs:
        say.show(costs)
    if beside:
        say.show(streams.published(beside))
    say.doubts(found["warnings"])


def _group_document(name: str, found: StreamDoc) -> GroupDoc:
    group = groups.group(name)
    here = {run["series"] for run in found["runs"]}
    published: list[PublishedSeriesDoc] = [
        {
            "name": series.name,
            "mode": series.mode,
            "memory": series.memory,
            "threads_on": series.threads_on,
            "affinity": series.affinity,
            "triad_gb_s": {str(count): gb_s for count, gb_s in series.triad_gb_s.items()},
            "overheads": {str(count): share for count, share in series.overheads().items()},
            "measured_here": series.name in here,
        }
        for series in group.series
    ]
    return {**found, "group": name, "title": group.title, "source": groups.source(), "published": published}


def _counts(text: str | None, most: int) -> list[int]:
    """Numbers of threads that a list such as ``1,4,10`` names."""
    if text is None:
        return [most]
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and int(part) > 0 for part in parts):
        message = f"--threads {text}: that is no list of numbers\nhint: write --threads 1,2,4"
        raise RequestError(message)
    return sorted({int(part) for part in parts})
