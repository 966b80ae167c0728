"""The list of Debian's packages: what each serves, and the words for one that is not here."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FILE = Path(__file__).with_name("packages.toml")


@dataclass(frozen=True)
class Package:
    """A package.

    Attributes:
        name: As apt knows it.
        group: Part of the list: ``build``, ``verbs``, ``lab``, ``tests``, ``unharmed`` or ``bare``.
        serves: What it is for.
        brings: Programs of it that are looked for.
        at_least: The oldest version that serves; empty where any does.
    """

    name: str
    group: str
    serves: str
    brings: tuple[str, ...] = ()
    at_least: str = ""

    @property
    def hint(self) -> str:
        """How to install it."""
        return f"apt-get install {self.name}"


@cache
def listed() -> tuple[Package, ...]:
    """All packages, in the order of the list."""
    groups = tomllib.loads(FILE.read_text(encoding="utf-8"))
    return tuple(
        Package(name, group, told["serves"], tuple(told.get("brings", ())), told.get("at_least", ""))
        for group, packages in groups.items()
        for name, told in packages.items()
    )


def named(name: str) -> Package:
    """A package of the list, which is there.

    Example:
        >>> named("valgrind").serves
        '`trace import`'
    """
    return next(package for package in listed() if package.name == name)


def bringing(program: str) -> Package | None:
    """The package that brings a program, where the list has one.

    Example:
        >>> bringing("pmempool").hint
        'apt-get install pmdk-tools'
    """
    return next((package for package in listed() if program in package.brings), None)
