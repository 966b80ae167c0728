"""Compiles programs of this suite once; they stay in `build/unharmed` until their source or their flags change."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from support import ROOT

BUILD = ROOT / "build" / "unharmed"
CASES = Path(__file__).parent / "cases"
COMPILERS = {".c": ("gcc", "-std=gnu2x"), ".cpp": ("g++", "-std=c++17")}
# Every call of malloc is made, and every function has a frame of its own.
HONEST = ("-O1", "-g", "-fno-builtin", "-fno-inline", "-Wall", "-Wextra", "-Werror", "-Wno-unused-result", "-pthread")
NOBODY = 65534


def built(source: str | Path, *flags: str) -> Path:
    """The program of a source file, in `cases` by default, compiled when it has to be; without a compiler, a skip."""
    path = CASES / source
    if shutil.which(compiler := COMPILERS[path.suffix][0]) is None:
        pytest.skip(f"{compiler} is not installed here: apt-get install {compiler}")
    words = [*COMPILERS[path.suffix], *HONEST, *flags]
    content = b"".join(file.read_bytes() for file in (path, *sorted(CASES.glob("*.h*"))))
    mark = hashlib.sha256(" ".join(words).encode() + content).hexdigest()[:12]
    program = BUILD / f"{path.stem}-{mark}" / path.stem
    if not program.exists():
        _compile([*words, str(path)], program)
    return program


def owned_by_nobody(program: Path) -> Path:
    """A copy that runs with the rights of the user nobody, whoever starts it."""
    copy = program.with_name(f"{program.name}-set-user-id")
    if not copy.exists():
        own = copy.with_suffix(f".{os.getpid()}")
        shutil.copy(program, own)
        os.chown(own, NOBODY, NOBODY)
        own.chmod(0o4755)
        own.rename(copy)
    return copy


def _compile(words: list[str], program: Path) -> None:
    """Other workers may do the same at the same time: it appears whole or not at all."""
    program.parent.mkdir(parents=True, exist_ok=True)
    own = program.with_suffix(f".{os.getpid()}")
    done = subprocess.run([*words, "-o", str(own)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    own.rename(program)
