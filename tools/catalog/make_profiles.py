"""Writes the catalog's profiles of programs that were described on paper.

    python tools/catalog/make_profiles.py [FOLDER]

FOLDER is python/tierloom/catalog/profiles by default. The output is a pure function of the code
beside this file; a test holds the committed files against it.
"""

from __future__ import annotations

import sys
from pathlib import Path

import cloverleaf
import npb
import paper
import xsbench

CATALOG = Path(__file__).parents[2] / "python" / "tierloom" / "catalog" / "profiles"


def programs() -> list[paper.Program]:
    """Every program of the catalog."""
    return [*npb.programs(), xsbench.xsbench(), *(cloverleaf.cloverleaf(deck) for deck in cloverleaf.DECKS)]


def write(folder: Path) -> list[Path]:
    """Writes every profile below a folder; returns the files."""
    files = []
    for program in programs():
        file = folder / f"{program.name}.profile" / "profile.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(paper.text(program), encoding="utf-8")
        files.append(file)
    return files


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else CATALOG)
