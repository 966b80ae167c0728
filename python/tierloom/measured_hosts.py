"""Hosts that were measured: the last machine file of each, kept in the user's state directory.

A profile says on which host its program ran. Where that host was measured, predictions are anchored to the run.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tierloom._core as _core
from tierloom.catalog.one_line import ANY_CPU
from tierloom.errors import MachineError, RequestError, TierloomError
from tierloom.nouns import Machine

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tierloom.nouns import Profile
    from tierloom.schema import PlanMemoryDoc

CPUS = Path("/proc/cpuinfo")

DISK = "ssd"
"""Kind of what is no memory node."""
SIZE_ERROR = 0.1
"""Part of a memory's size by which two may differ that are one: the kernel keeps some for itself. Assumed."""
LATENCY_ERROR = 0.3
"""The same of latency: two measurements of a shared machine are not alike. Assumed."""

_MODEL = re.compile(r"^model name\s*:\s*(.+?)\s*$", re.MULTILINE)
_MARKS = re.compile(r"\((r|tm)\)|\b(cpu|processor)\b|\b\d+-core\b|@.*")
"""What some names of a processor have and others of the same one have not."""


def keep(machine: Machine) -> Path | None:
    """Keeps the machine of the host that it says it is of; nothing where it says none, or nothing can be written."""
    host = machine.data.get("host")
    if host is None:
        return None
    path = _path(host)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        machine.save(path)
    except (OSError, TierloomError):
        return None
    return path


def ran_on(profile: Profile, planned_for: Machine, said: Machine | str | Path | None = None) -> Machine | None:
    """The machine that a profile was recorded on, as somebody says or as it was measured; nothing where nobody did.

    Raises:
        RequestError: The profile names another processor than what is said.
    """
    if said is not None:
        return _of_the_run(profile, Machine.of(said))
    host = profile.data["program"].get("host")
    return planned_for if host is not None and planned_for.data.get("host") == host else kept(host)


def _of_the_run(profile: Profile, machine: Machine) -> Machine:
    ran_on = profile.data["program"]["cpu"]
    cpus = [socket["cpu"] for socket in machine.data["sockets"]]
    if "sampling" in profile.data and not any(_may_be_one(ran_on, cpu) for cpu in cpus):
        message = (
            f"{profile.name} was not recorded on {machine.name}: it ran on {ran_on}, and {machine.name} has {cpus[0]}\n"
            "hint: leave it out, or give the file that `tierloom machine measure` writes where it ran"
        )
        raise RequestError(message)
    return machine


def is_elsewhere(name: str, host: str | None, memories: Sequence[PlanMemoryDoc] = ()) -> bool:
    """Whether a machine that a plan was made for is not this `host`.

    One of the catalog is where the processor has another name. Any other is, if it has a memory of a size that no node
    has here, or of a latency that was not measured here: that of somebody's own, and a what-if of this one.

    Args:
        name: Of the machine.
        host: This one; none where nothing tells.
        memories: What the plan says of the machine's; empty in older files.
    """
    here = kept(host)
    if name in Machine.names() and (here is None or here.name != name):
        return _has_other_cpu(name)
    seen = _nodes() if here is None else _measured(here)
    return bool(seen) and not all(_is_among(memory, seen) for memory in memories if memory["kind"] != DISK)


def _nodes() -> list[tuple[float, float | None]]:
    """Bytes of each memory node here, as the kernel tells them, and no latency; nothing where it does not."""
    try:
        told = _core.describe_machine("/")
    except MachineError:
        return []
    return [(node["capacity_bytes"], None) for node in told["host"]["nodes"]]


def _measured(machine: Machine) -> list[tuple[float, float | None]]:
    """Bytes of each memory, and its latency from the nearest socket, ns."""
    paths = machine.data["paths"]
    nearest = {
        path["to"]: min(each["idle_ns"]["value"] for each in paths if each["to"] == path["to"]) for path in paths
    }
    return [(memory["capacity_bytes"]["value"], nearest[memory["name"]]) for memory in machine.data["memories"]]


def _is_among(memory: PlanMemoryDoc, seen: Sequence[tuple[float, float | None]]) -> bool:
    size_bytes, idle_ns = memory["capacity_bytes"], memory.get("idle_ns")
    return any(
        abs(size_bytes - there) <= SIZE_ERROR * there
        and (idle_ns is None or ns is None or abs(idle_ns - ns) <= LATENCY_ERROR * ns)
        for there, ns in seen
    )


def _has_other_cpu(name: str) -> bool:
    """Whether the processor of a machine of the catalog has another name than that of this one."""
    found = _MODEL.search(CPUS.read_text(encoding="utf-8", errors="replace")) if CPUS.is_file() else None
    cpus = [socket["cpu"] for socket in Machine.load(name).data["sockets"]]
    return found is not None and not any(_words(found[1]) == _words(cpu) for cpu in cpus)


def _may_be_one(one: str, other: str) -> bool:
    """Whether two names may be of one processor: those of virtual machines leave words out, a machine on a line all."""
    if ANY_CPU in {one, other}:
        return True
    words, others = _words(one), _words(other)
    return words <= others or others <= words


def _words(cpu: str) -> set[str]:
    return set(re.findall(r"[a-z0-9]+", _MARKS.sub(" ", cpu.lower())))


def kept(host: str | None) -> Machine | None:
    """The machine of a host, as it was measured last; nothing where nobody did."""
    if host is None:
        return None
    try:
        machine = Machine.load(_path(host))
    except TierloomError:
        return None
    return machine if machine.data.get("host") == host else None


def measured_figures(host: str) -> dict[str, Any]:
    """What a recording takes from the measurement of its host; nothing where nobody measured it.

    Returns:
        ``llc_bytes``: What a core reaches of the last-level cache. The kernel reports what the processor has; a virtual
            machine may get a small part of it.
        ``memory``: Of the nearest memory the latency at rest, ns, and the lines that a core keeps in flight, by loads
            that do not depend on each other and where it reads one after the other.
    """
    machine = kept(host or None)
    if machine is None:
        return {}
    sockets = machine.data["sockets"]
    near = min(machine.data["paths"], key=lambda path: float(path["idle_ns"]["value"]))
    of = next(socket for socket in sockets if socket["name"] == near["from"])
    lines = [float(of[key]["value"]) for key in ("demand_lines", "stream_lines")]
    return {
        "llc_bytes": min(int(socket["llc_per_core_bytes"]["value"]) for socket in sockets),
        "memory": [float(near["idle_ns"]["value"]), *lines],
    }


def _path(host: str) -> Path:
    """As the XDG base directory specification has it: a relative path there counts for nothing."""
    named = Path(os.environ.get("XDG_STATE_HOME", ""))
    states = named if named.is_absolute() else Path.home() / ".local" / "state"
    return states / "tierloom" / "machines" / f"{host}.toml"
