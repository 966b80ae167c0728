"""Memory that survives: pools of named NumPy arrays, transactions over them, checkpoints.

A pool is one file. On persistent memory (a file of a DAX file system, or ``/dev/dax0.0``) a commit
writes cache lines back and needs no system call; on any other file it is ``msync``, and
:attr:`Pool.durability` says so.

Example:
    >>> import numpy, tempfile, pathlib
    >>> from tierloom.pmem import Pool
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "state.pool"
    >>> with Pool.create(path, "1MiB") as pool:
    ...     field = pool.zeros("field", (4, 4))
    ...     with pool.transaction(field):
    ...         field[:] = 1.0
    >>> with Pool.open(path) as pool:
    ...     float(pool["field"].sum())
    16.0
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tierloom.on_demand import attribute

if TYPE_CHECKING:
    from tierloom.pmem.pool_files import check, lacks_pmdk, look, repair
    from tierloom.pmem.pools import Pool, Usage

__all__ = ["Pool", "Usage", "check", "lacks_pmdk", "look", "repair"]

HOMES = {"pool_files": ("check", "lacks_pmdk", "look", "repair"), "pools": ("Pool", "Usage")}
"""Modules by what they offer here, as in :mod:`tierloom`: they bring NumPy, and a help text must not wait for it."""


def __getattr__(name: str) -> object:
    """Loads the module of a name when it is asked for."""
    return attribute(__name__, HOMES, name)


def __dir__() -> list[str]:
    """What there is to complete, loaded or not."""
    return sorted({*globals(), *__all__})
