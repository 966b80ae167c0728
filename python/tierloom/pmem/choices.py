"""What a pool and a stream over it can be asked for, by name. Options list these, and must not load NumPy for it."""

from __future__ import annotations

from typing import Literal

Backend = Literal["native", "pmdk"]
BACKENDS: tuple[Backend, ...] = ("native", "pmdk")
"""Who can keep a pool: our own format, or PMDK's libpmemobj."""

Persist = Literal["none", "flush", "transaction"]
PERSISTS: tuple[Persist, ...] = ("none", "flush", "transaction")
