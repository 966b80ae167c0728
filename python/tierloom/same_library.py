"""The C library runs the same code in both runs of a program that is counted.

It has several versions of what handles memory and strings, and takes one by the processor. Valgrind has no AVX-512, no
transactional memory, a fast ``rep movsb`` and a small cache; so it would count functions that did not run before.
Both runs are told by ``GLIBC_TUNABLES`` (glibc's manual, *Tunables*) to leave out what only one of them has.
"""

from __future__ import annotations

import os
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

NAME = "GLIBC_TUNABLES"
FEATURES = "glibc.cpu.hwcaps"
HIDDEN = ("AVX512F", "AVX512VL", "AVX512BW", "RTM", "Prefer_No_VZEROUPPER")
"""Of the processor: what Valgrind does not have. With RTM, glibc leaves AVX2 out unless the last one is off."""
BY_CACHE = ("x86_rep_movsb_threshold", "x86_rep_stosb_threshold", "x86_non_temporal_threshold")
"""From which size on memory is copied and filled otherwise; glibc works them out from the caches."""
LOADER = "/lib64/ld-linux-x86-64.so.2"


@contextmanager
def same_library() -> Iterator[None]:
    """What is started inside runs the same code of the C library, under Valgrind and without it."""
    before = os.environ.get(NAME)
    os.environ[NAME] = setting(before or "")
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(NAME, None)
        else:
            os.environ[NAME] = before


def setting(asked: str) -> str:
    """``GLIBC_TUNABLES`` for both runs on this processor, where the user's is ``asked``."""
    return tunables(asked, _flags(), _listed())


def tunables(asked: str, flags: str, listed: str) -> str:
    """What the user asked for, and what is missing there.

    Args:
        asked: ``GLIBC_TUNABLES`` as it is.
        flags: What the processor has, in words of ``/proc/cpuinfo``.
        listed: All tunables of the loader with their values.

    Example:
        >>> tunables("glibc.malloc.check=0:glibc.cpu.hwcaps=-AVX2", "erms", "")
        'glibc.malloc.check=0:glibc.cpu.hwcaps=-AVX2,-AVX512F,-AVX512VL,-AVX512BW,-RTM,-Prefer_No_VZEROUPPER'
    """
    parts = [one.partition("=") for one in asked.split(":") if one]
    settings = {name: value for name, _, value in parts}
    hidden = HIDDEN if "erms" in flags.split() else (*HIDDEN, "ERMS")
    settings[FEATURES] = ",".join(filter(None, [settings.get(FEATURES), *(f"-{feature}" for feature in hidden)]))
    for line in listed.splitlines():
        name, _, value = line.partition(": ")
        if name.rpartition(".")[2] in BY_CACHE and value:
            settings.setdefault(name, value.split()[0])
    return ":".join(f"{name}={value}" for name, value in settings.items())


def _flags() -> str:
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    return next((line.partition(":")[2] for line in lines if line.startswith("flags")), "")


def _listed() -> str:
    if not Path(LOADER).exists():
        return ""
    return subprocess.run([LOADER, "--list-tunables"], capture_output=True, text=True, check=False).stdout
