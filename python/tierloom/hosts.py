"""Hosts that were measured: the last machine file of each, kept in the user's state directory.

A profile says on which host its program ran. Where that host was measured, predictions are anchored to the run.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from tierloom.errors import TierloomError
from tierloom.nouns import Machine

if TYPE_CHECKING:
    from tierloom.nouns import Profile


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


def ran_on(profile: Profile, planned_for: Machine) -> Machine | None:
    """The machine that a profile was recorded on, as it was measured; nothing where nobody did."""
    host = profile.data["program"].get("host")
    return planned_for if host is not None and planned_for.data.get("host") == host else kept(host)


def kept(host: str | None) -> Machine | None:
    """The machine of a host, as it was measured last; nothing where nobody did."""
    if host is None:
        return None
    try:
        machine = Machine.load(_path(host))
    except TierloomError:
        return None
    return machine if machine.data.get("host") == host else None


def measured_llc_bytes(host: str) -> int | None:
    """What a core of a host reaches of the last-level cache, as it was measured; nothing where nobody did.

    The kernel reports what the processor has; a virtual machine may get a small part of it.
    """
    machine = kept(host or None)
    if machine is None:
        return None
    return min(int(socket["llc_per_core_bytes"]["value"]) for socket in machine.data["sockets"])


def _path(host: str) -> Path:
    """As the XDG base directory specification has it: a relative path there counts for nothing."""
    named = Path(os.environ.get("XDG_STATE_HOME", ""))
    states = named if named.is_absolute() else Path.home() / ".local" / "state"
    return states / "tierloom" / "machines" / f"{host}.toml"
