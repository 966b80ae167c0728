"""Packages of Node that tests run, installed once from their lock, beside what else is built."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
from pathlib import Path

from support import ROOT

SOURCE = ROOT / "tools" / "node"
FILES = ("package.json", "package-lock.json")


def installed() -> Path:
    """The folder with `node_modules` in it."""
    folder = ROOT / "build" / "node"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for name in FILES:
            shutil.copyfile(SOURCE / name, folder / name)
        done = folder / "node_modules" / ".package-lock.json"
        if not done.exists() or done.stat().st_mtime < (SOURCE / "package-lock.json").stat().st_mtime:
            subprocess.run(["npm", "ci", "--silent", "--no-audit", "--no-fund"], cwd=folder, check=True)
    return folder
