"""A plan's file as `plan` writes it: with a mark by which an edit shows, for what a person edited is not thrown away.

The mark is a comment with a digest of what follows it. A file whose mark is right is as it was written, and is
replaced; any other plan is kept beside the new one.
"""

from __future__ import annotations

import hashlib
import re
from itertools import count
from typing import TYPE_CHECKING

from tierloom import outputs

if TYPE_CHECKING:
    from pathlib import Path

    from tierloom.nouns import Plan

MARK = re.compile(r"# Edit this plan as you like: `plan` keeps edited plans \(written as (\w+)\)\.\n")


def write(plan: Plan, path: Path) -> Path | None:
    """Writes a plan, and says under which name the edited one is kept that was there, if one was.

    Raises:
        RequestError: It cannot be written there.
        OutputError: There is no room for it.
    """
    kept = _kept(path)
    outputs.write(path, marked(plan.text))
    return kept


def marked(text: str) -> str:
    """A plan's text below its mark."""
    return f"# Edit this plan as you like: `plan` keeps edited plans (written as {_digest(text)}).\n{text}"


def is_edited(content: str) -> bool:
    """Whether a file is not as it was written, as far as can be told: files without a mark count as edited."""
    found = MARK.match(content)
    return found is None or found[1] != _digest(content[found.end() :])


def _kept(path: Path) -> Path | None:
    """Copies the plan that is there to the first name that is free, if it was edited."""
    if not path.is_file():
        return None
    content = path.read_text(encoding="utf-8")
    if not content or not is_edited(content):
        return None
    names = (path.with_name(f"{path.name}.{number}") for number in count(1))
    beside = next(name for name in names if not name.exists())
    outputs.write(beside, content)
    return beside


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]
