"""What the process that all wardens are forked from has done once: imported Tierloom, and measured what it measures
before its first recording with each back-end."""

from __future__ import annotations

from unharmed import warden
from unharmed.ways import BACKENDS

from tierloom import profiler

__all__ = ["warden"]

for _backend in BACKENDS:
    profiler.record(["true"], backend=_backend)
