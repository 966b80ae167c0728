"""What a profile is called by default, and whose profile it replaces.

Two scripts are two programs, though one interpreter runs both: a profile has the script's name.
"""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from tierloom.profile_folder import ENDING, PROFILE_FILE

if TYPE_CHECKING:
    from collections.abc import Sequence

INTERPRETER = re.compile(
    r"(python|pypy|perl|ruby|lua|php|node|nodejs|bun|deno|java|julia|Rscript|sh|bash|dash|zsh|ksh|fish)[\d.]*"
)
"""Programs that run a file which their words name."""

IN_PLACE = ("-c", "-e", "-E", "-r")
"""Options after which the program itself stands; it has no name."""


def default_name(command: Sequence[str]) -> str:
    """Name of the folder for a command's profile: after the script of an interpreter, else after the program."""
    program = Path(command[0]).name
    return f"{_script(command) or program}{ENDING}" if INTERPRETER.fullmatch(program) else f"{program}{ENDING}"


def _script(command: Sequence[str]) -> str | None:
    """The stem of the first word that is a file, or the module of ``-m``; none where neither is."""
    for at, word in enumerate(command[1:], 1):
        if word in IN_PLACE:
            return None
        if word == "-m" and Path(command[0]).name.startswith(("python", "pypy")):
            return next(iter(command[at + 1 : at + 2]), None)
        if not word.startswith("-") and Path(word).is_file():
            return Path(word).stem or None
    return None


def replaced(folder: Path, command: Sequence[str]) -> list[str]:
    """What to say where a folder holds the profile of another command."""
    try:
        held = json.loads((folder / PROFILE_FILE).read_text(encoding="utf-8"))["program"]["command"]
        other = shlex.join(held)
    except (OSError, ValueError, LookupError, TypeError):
        return []
    if other in {"", shlex.join(command)}:
        return []
    return [f"{folder} was the profile of `{other}`, which this one replaces; -o names another folder"]
