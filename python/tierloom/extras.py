"""Packages that only some verbs need: the extras of ``pyproject.toml``, and what each is for.

Profiling, planning and running take none of them. A module whose work needs one imports it inside
:func:`brought_by`, so that a package that is not there is one sentence that names the extra. Every verb comes by
here, so what reads the lists of packages is loaded when somebody asks.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tierloom.errors import MissingPackageError

if TYPE_CHECKING:
    from collections.abc import Iterator

EXTRAS = {
    "report": "pictures and HTML pages: `report`, `--html`, `--plot`, those of `demo`",
    "offload": "`offload`, `reproduce`",
    "capacity": "`capacity` with DuckDB and Redis, `reproduce`",
    "spark": "`capacity measure spark`",
    "sweep": "`sweep`",
    "frames": "data frames of answers, in Polars or pandas",
    "gguf": "models from `.gguf` files in `offload`",
}
"""What each extra serves."""


@contextmanager
def brought_by(extra: str) -> Iterator[None]:
    """Imports of packages that an extra brings.

    Raises:
        MissingPackageError: One of them is not installed.

    Example:
        >>> with brought_by("report"):
        ...     import no_such_package
        Traceback (most recent call last):
        tierloom.errors.MissingPackageError: no_such_package: not installed
        hint: pip install '.[report]'
    """
    try:
        yield
    except ModuleNotFoundError as problem:
        if problem.name is None or problem.name.partition(".")[0] == "tierloom":
            raise
        raise _refusal([problem.name.partition(".")[0]], extra) from problem


def require(extra: str) -> None:
    """Refuses at once what would need an extra at its end.

    Raises:
        MissingPackageError: A package of it is not installed.
    """
    if lacking := missing(extra):
        raise _refusal(lacking, extra)


def missing(extra: str) -> list[str]:
    """Packages of an extra that are not installed."""
    from importlib import metadata

    marked = [
        line for line in metadata.requires("tierloom") or [] if re.search(rf"extra\s*==\s*['\"]{extra}['\"]", line)
    ]
    names = [re.split(r"[\s<>=;!~\[]", line, maxsplit=1)[0] for line in marked]
    return [name for name in names if not _installed(name)]


def _installed(name: str) -> bool:
    from importlib import metadata, util

    try:
        metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return util.find_spec(name.replace("-", "_")) is not None
    return True


def _refusal(names: list[str], extra: str) -> MissingPackageError:
    return MissingPackageError(f"{', '.join(names)}: not installed\nhint: pip install '.[{extra}]'")
