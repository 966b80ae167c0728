"""Hosts that were measured: the last machine file of each, kept in the user's state directory.

A profile says on which host its program ran. Where that host was measured, predictions are anchored to the run.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tierloom.catalog.one_line import ANY_CPU
from tierloom.errors import RequestError, TierloomError
from tierloom.nouns import Machine

if TYPE_CHECKING:
    from tierloom.nouns import Profile

CPUS = Path("/proc/cpuinfo")

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


def is_elsewhere(name: str, host: str | None) -> bool:
    """Whether a machine of the catalog is not this `host`: another name of its processor, and not measured here."""
    here = kept(host)
    if name not in Machine.names() or (here is not None and here.name == name):
        return False
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
