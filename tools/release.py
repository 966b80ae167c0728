"""Builds the wheel that is given to others: for every x86-64 Linux since glibc 2.28. `make release` runs it.

Usage: python3 tools/release.py FOLDER

What is compiled here would want the C library of this machine. Zig links the same code against that of older ones,
for the Rust core, the library that is preloaded, and the program of the demo. All is built from a copy of what git
tracks, so nothing of the working copy changes.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
GLIBC = "2.28"
"""That of RHEL 8, Debian 10 and Ubuntu 18.10, and what other packages of the field's wheels ask for."""

POLICY = f"manylinux_{GLIBC.replace('.', '_')}"
TAG = f"{POLICY}_x86_64"
TARGET = "x86_64-unknown-linux-gnu"
BIN = Path(sys.executable).parent


def main(folder: Path) -> None:
    """Builds the wheel into a folder, checks it, and says where it is."""
    with tempfile.TemporaryDirectory() as temporary:
        copy = Path(temporary) / "tierloom"
        copied(copy)
        native = copy / "python" / "tierloom" / "native"
        native.mkdir(exist_ok=True)
        shutil.copy(ROOT / "python" / "tierloom" / "native" / "vega.js", native)
        preloaded(copy, native)
        program(copy, native)
        wheel = packed(copy, folder)
    checked(wheel)
    sys.stdout.write(f"{wheel}\n")


def copied(copy: Path) -> None:
    """What git tracks, as it is now."""
    for name in run("git", "ls-files", "-z", folder=ROOT).split("\0")[:-1]:
        if (ROOT / name).exists():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, copy / name)


def preloaded(copy: Path, native: Path) -> None:
    """The library that is preloaded."""
    asked = ("--release", "--locked", "--quiet", "--package", "tierloom-preload", "--target", f"{TARGET}.{GLIBC}")
    run("cargo-zigbuild", "zigbuild", *asked, folder=copy)
    built = Path(os.environ.get("CARGO_TARGET_DIR", copy / "target")) / TARGET / "release" / "libtierloom_preload.so"
    shutil.copy(built, native)


def program(copy: Path, native: Path) -> None:
    """The demo's program, with one thread: Zig brings no OpenMP, and a wheel should not want the system's."""
    flags = ("-std=c++17", "-O2", "-g", "-mcpu=x86_64_v2", "-Wall", "-Wno-unknown-pragmas")
    zig = (sys.executable, "-m", "ziglang", "c++", "-target", f"x86_64-linux-gnu.{GLIBC}")
    run(*zig, *flags, "-o", native / "mg", copy / "workloads" / "mg.cpp", folder=copy)


def packed(copy: Path, folder: Path) -> Path:
    """The wheel."""
    folder.mkdir(parents=True, exist_ok=True)
    asked = ("--release", "--locked", "--quiet", "--zig", "--target", TARGET, "--compatibility", POLICY)
    run("maturin", "build", *asked, "--out", folder, folder=copy)
    return max(folder.glob(f"tierloom-*{TAG}.whl"), key=lambda wheel: wheel.stat().st_mtime)


def checked(wheel: Path) -> None:
    """Ends with an error where some file in the wheel wants more than its name says."""
    told = " ".join(run("auditwheel", "show", wheel, folder=wheel.parent).split())
    if not (found := re.search(r'platform tag: "(manylinux_(\d+)_(\d+)_x86_64)"', told)):
        sys.exit(f"error: {wheel.name} runs on this machine alone:\n{told}")
    if (int(found[2]), int(found[3])) > tuple(map(int, GLIBC.split("."))):
        sys.exit(f"error: {wheel.name} wants {found[1]}:\n{told}")


def run(*command: str | Path, folder: Path) -> str:
    """A command's output; ends with all of it when the command fails."""
    environment = {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"error: {' '.join(map(str, command))}:\n{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
