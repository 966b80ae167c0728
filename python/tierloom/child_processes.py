"""Programs that end when we do, however we do."""

from __future__ import annotations

import shutil


def ends_with_us() -> list[str]:
    """Words before a command by which the kernel kills it when this process dies; none without util-linux."""
    return [] if shutil.which("setpriv") is None else ["setpriv", "--pdeathsig", "KILL", "--"]
