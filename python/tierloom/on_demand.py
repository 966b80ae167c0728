"""What a package offers without loading its modules: one is loaded when the first of its names is asked for."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def attribute(package: str, homes: Mapping[str, Sequence[str]], name: str) -> object:
    """A package's attribute, from the module that has it.

    Args:
        package: The package's full name.
        homes: Names, by the module of the package that has them.
        name: Of the attribute.

    Raises:
        AttributeError: No module has it.
    """
    for home, names in homes.items():
        if name in names:
            return getattr(importlib.import_module(f"{package}.{home}"), name)
    message = f"module `{package}` has no attribute `{name}`"
    raise AttributeError(message)
