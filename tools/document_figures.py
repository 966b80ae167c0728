"""Figures of the documents that the engines draw: `python tools/document_figures.py`.

Each is what a verb draws under `--plot`. Nothing is measured, so they are the same everywhere, and a test holds what is
kept against what is drawn. The figure of docs/story.md is of a real run: `tools/story.py` draws it.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1] / "docs"
TIERLOOM = Path(sys.executable).parent / "tierloom"

FIGURES = {
    "cg.png": "plan cg-e --machine liu-a --threads 32 --nodes ldram,cxl --fast-memory 50%",
    "capacity.png": "capacity fit duckdb-tpch",
}
"""Files, and what draws them."""


def draw(name: str, folder: Path) -> Path:
    """A figure anew, in a folder."""
    command = [TIERLOOM, *FIGURES[name].split(), "--plot", name]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return folder / name


def main() -> None:
    """Draws all of them."""
    with tempfile.TemporaryDirectory() as folder:
        for name in FIGURES:
            (DOCS / name).write_bytes(draw(name, Path(folder)).read_bytes())


if __name__ == "__main__":
    main()
