"""Running a program three times: on its own, under `tierloom profile`, and under `tierloom run`."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parent / "programs"
PLAN = """
version = 1
machine = "this one"
profile = "torture"
policy = "by hand"
nodes = ["dram"]
default = { prefer = "dram" }

[predicted]
time_s = 1.0
low_s = 1.0
high_s = 1.0
threads = 1
bytes = [0]

[[rules]]
object = "large"
size_bytes = 0
select = { size_at_least = 32768 }
place = { bind = ["dram"] }
"""
"""Every recorded block is placed, on the node that every machine has; so is everything else."""


@dataclass(frozen=True)
class Thrice:
    """What a program did on its own and under us, and what we found out."""

    alone: subprocess.CompletedProcess[bytes]
    profiled: subprocess.CompletedProcess[bytes]
    placed: subprocess.CompletedProcess[bytes]
    profile: dict

    def unharmed(self, *, words_too: bool = True) -> None:
        """Same output, same exit code; on stderr the program's own words come first, then ours."""
        code = self.alone.returncode
        expected = code if code >= 0 else 128 - code
        for result in (self.profiled, self.placed):
            assert result.stdout == self.alone.stdout, result.stderr.decode()
            assert result.returncode == expected, result.stderr.decode()
            if words_too:
                assert result.stderr.startswith(self.alone.stderr)
        assert self.profile["program"]["exit_code"] == expected

    def complete(self) -> None:
        """No event was lost, so every object is there."""
        lost = [warning for warning in self.warnings() if "allocation events were lost" in warning]
        assert not lost

    def warnings(self) -> list[str]:
        return self.profile["sampling"]["warnings"]

    def objects(self, name: str) -> list[dict]:
        """Objects by the function that allocated them, or by their symbol."""
        return [item for item in self.profile["objects"] if re.split("[@:]", item["name"])[0] == name]

    def allocations(self, function: str | None = None) -> int:
        """Recorded allocations on the heap, all or by one function."""
        items = self.profile["objects"] if function is None else self.objects(function)
        return sum(item["allocations"] for item in items if item["kind"] == "heap")


Torture = Callable[..., Thrice]
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
        try:
            subprocess.run(words, check=True, capture_output=True)
        except FileNotFoundError:
            pytest.skip(f"{words[0]} is not installed here; .ci/run installs it")
        except subprocess.CalledProcessError as error:
            if b"cannot find" in error.stderr:
                pytest.skip(f"a library is not installed here; .ci/run installs it: {error.stderr.decode()}")
            raise AssertionError(error.stderr.decode()) from error
        return program

    return call


@pytest.fixture
def torture(executable: Path, folder: Path) -> Torture:
    """Runs a command alone, profiled, and placed."""

    def call(*command: str | Path, variables: Mapping[str, str] | None = None, stdin: bytes = b"") -> Thrice:
        words = [str(word) for word in command]
        environment = {**os.environ, **(variables or {})}

        def run(*before: str) -> subprocess.CompletedProcess[bytes]:
            return subprocess.run(
                [*before, *words], input=stdin, capture_output=True, cwd=folder, env=environment, check=False
            )

        (folder / "torture.plan.toml").write_text(PLAN)
        alone = run()
        profiled = run(str(executable), "profile", "-o", "it.profile", "--")
        written = folder / "it.profile" / "profile.json"
        assert written.exists(), profiled.stderr.decode()
        placed = run(str(executable), "run", "--plan", "torture.plan.toml", "--")
        return Thrice(alone, profiled, placed, json.loads(written.read_text(encoding="utf-8")))

    return call
