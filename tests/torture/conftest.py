"""Compiling the programs of this suite, and running them three times."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from support import LIBRARIES, lacking
from three_ways import Finished, ThreeWays, run_three_ways

from tierloom.debian import packages

PROGRAMS = Path(__file__).parent / "programs"

Torture = Callable[..., ThreeWays]
Compile = Callable[..., Path]


@pytest.fixture
def compiled(folder: Path) -> Compile:
    """Compiles a program of this suite into the current folder; skips where the compiler cannot."""
    compilers = {".c": ("gcc", "-std=gnu2x"), ".cpp": ("g++", "-std=c++17"), ".f90": ("gfortran",)}

    def call(source: str, *flags: str, output: str | None = None) -> Path:
        path = PROGRAMS / source
        program = folder / (output or path.stem)
        # Every call of malloc is made, and every function has a frame of its own.
        honest = ("-O1", "-g", "-fno-inline", *(() if path.suffix == ".f90" else ("-fno-builtin",)))
        words = [*compilers[path.suffix], *honest, "-pthread", "-o", program, path, *flags]
        if reason := lacking(words[0]):
            pytest.skip(reason)
        done = subprocess.run(words, check=False, capture_output=True, text=True)
        if missing := re.search(r"cannot find -l:?(\w+)", done.stderr):
            pytest.skip(f"lib{missing[1]} is not installed here: {packages.named(LIBRARIES[missing[1]]).hint}")
        assert done.returncode == 0, done.stderr
        return program

    return call


@pytest.fixture
def torture(executable: Path, folder: Path) -> Torture:
    """Runs a command alone, profiled, and placed."""

    def call(*command: str | Path, variables: Mapping[str, str] | None = None, stdin: bytes = b"") -> ThreeWays:
        words = [str(word) for word in command]
        environment = {**os.environ, **(variables or {})}

        def start(_turn: str, *before: str) -> Finished:
            return subprocess.run(
                [*before, *words], input=stdin, capture_output=True, cwd=folder, env=environment, check=False
            )

        return run_three_ways(executable, folder, start)

    return call
