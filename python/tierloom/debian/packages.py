"""The list of Debian's packages: what each serves, whether it is here, and the words for one that is not.

Whoever installs, looks at or needs a program asks here, so that all of them mean the same file.
"""

from __future__ import annotations

import os
import shutil
import subprocess
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
        group: Part of the list: ``build``, ``verbs``, ``lab``, ``tests``, ``live`` or ``bare``.
        serves: What it is for.
        brings: Programs of it that are run, or files by their paths where something else may have the same name.
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

    @property
    def is_here(self) -> bool:
        """Whether all that it brings is here, however it came, and no older than what serves."""
        if self.brings and not self.at_least:
            return all(file_of(each) is not None for each in self.brings)
        told = output("dpkg-query", "--show", "--showformat", "${db:Status-Abbrev} ${Version}", self.name).split()
        return len(told) == 2 and told[0] == "ii" and is_recent(told[1], self.at_least)


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
        '`profile --count`, `trace import`'
    """
    return next(package for package in listed() if package.name == name)


def bringing(program: str) -> Package | None:
    """The package that brings a program, where the list has one.

    Example:
        >>> bringing("pmempool").hint
        'apt-get install pmdk-tools'
    """
    return next((package for package in listed() if program in package.brings), None)


def file_of(program: str) -> str | None:
    """The file that runs where a program is called: a path itself, or the first of its name on ``PATH``."""
    if "/" in program:
        return program if Path(program).exists() else None
    return shutil.which(program)


def lacking(*programs: str) -> str | None:
    """The first of these programs or files that is not here, with how to get it.

    Example:
        >>> lacking("sh", "/no/such/file")
        '/no/such/file is not installed here'
    """
    for program in programs:
        if file_of(program) is None:
            package = bringing(program)
            return f"{program} is not installed here{f': {package.hint}' if package else ''}"
    return None


def is_recent(version: str, at_least: str) -> bool:
    """Whether a version is no older than the oldest that serves."""
    compare = ["dpkg", "--compare-versions", version, "ge", at_least]
    return not at_least or subprocess.run(compare, check=False).returncode == 0


def output(*command: str) -> str:
    """What a command prints; nothing where there is no such command."""
    if shutil.which(command[0]) is None:
        return ""
    environment = {**os.environ, "LC_ALL": "C"}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment).stdout
