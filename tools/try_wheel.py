"""Installs the wheel into clean environments and lets `tierloom demo` run from each: `make wheel-test`.

Usage: python3 tools/try_wheel.py WHEEL PYTHON…

First with what profile, plan and run need, where the demo draws nothing and says so; then with the extra that
draws. Of the Pythons, those that are not on this machine are left out, and said.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

DRAWN = {"report.html", "frontier.png"}


def main(wheel: Path, pythons: list[str]) -> None:
    """Tries the wheel with each Python that is here."""
    here = [python for python in pythons if works(python)]
    for python in here:
        with tempfile.TemporaryDirectory() as folder:
            tried(wheel, python, Path(folder))
        say(f"{python}: {wheel.name} installed, and its demo ran with and without pictures")
    for python in sorted(set(pythons) - set(here)):
        say(f"{python}: not on this machine")
    if not here:
        sys.exit("error: no Python to try the wheel with")


def works(python: str) -> bool:
    """Whether it starts, and makes virtual environments."""
    try:
        return subprocess.run([python, "-c", "import ensurepip"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


def tried(wheel: Path, python: str, folder: Path) -> None:
    """A clean environment, and the demo in it twice."""
    environment = folder / "venv"
    run(folder, python, "-m", "venv", environment)
    pip = (environment / "bin/pip", "install", "--quiet", "--disable-pip-version-check")
    run(folder, *pip, wheel)
    expect(demo(environment, folder / "plain"), set())
    run(folder, *pip, f"{wheel}[report]")
    expect(demo(environment, folder / "drawn"), DRAWN)


def demo(environment: Path, output: Path) -> set[str]:
    """Runs the demo; the pictures and pages that it wrote, for its plan and profile are always there."""
    run(environment.parent, environment / "bin/tierloom", "demo", "-o", output)
    written = {path.name for path in output.iterdir()}
    return written - {"mg.profile", "mg.plan.toml"} if {"mg.profile", "mg.plan.toml"} <= written else {"no plan"}


def expect(found: set[str], wanted: set[str]) -> None:
    """Ends with an error where the demo wrote something else."""
    if found != wanted:
        sys.exit(f"error: the demo wrote {sorted(found)}, not {sorted(wanted)}")


def run(folder: Path, *command: str | Path) -> None:
    """A command outside the repository, with nothing of this environment; its output only when it fails."""
    clean = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "VIRTUAL_ENV"}}
    done = subprocess.run(command, cwd=folder, env=clean, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"error: {' '.join(map(str, command))}: {done.stdout}{done.stderr}")


def say(text: str) -> None:
    """A line on stdout."""
    sys.stdout.write(text + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), sys.argv[2:])
