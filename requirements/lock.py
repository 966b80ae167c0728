"""Prints the lock: what pip chooses today for the ranges of ``pyproject.toml``.

It installs into a throw-away virtual environment, so that nothing of this machine leaks in.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import tomllib
import venv
from pathlib import Path


def main() -> None:
    """Prints the lock on stdout."""
    project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text(encoding="utf-8"))
    wanted = [*project["project"]["dependencies"], *project["project"]["optional-dependencies"]["dev"]]
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        pip = [f"{folder}/bin/python", "-m", "pip", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "install", *wanted], check=True)
        frozen = subprocess.run([*pip, "freeze"], check=True, capture_output=True, text=True).stdout
    sys.stdout.write(f"# Written by `make lock`; see README.md in this folder.\n{frozen}")


if __name__ == "__main__":
    main()
