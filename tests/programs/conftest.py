"""Running a real program three times: on its own, under `tierloom profile`, and under `tierloom run`."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest


def module_of(path: Path) -> ModuleType:
    """A Python file beside this one; tests are no package."""
    if path.stem not in sys.modules:
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec
        assert spec.loader
        sys.modules[path.stem] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[path.stem])
    return sys.modules[path.stem]


real = module_of(Path(__file__).with_name("real.py"))


@dataclass(frozen=True)
class Ways:
    """What a program did on its own, under `profile` and under `run`, and the profile."""

    program: real.Program
    alone: subprocess.CompletedProcess[bytes]
    profiled: subprocess.CompletedProcess[bytes]
    placed: subprocess.CompletedProcess[bytes]
    profile: dict

    @property
    def objects(self) -> dict[str, dict]:
        return {item["name"]: item for item in self.profile["objects"]}

    def unharmed(self) -> None:
        """Same output, same exit code; on stderr the program's own words come first, then ours."""
        visible = self.program.visible
        assert self.program.says in self.alone.stdout, self.alone.stderr.decode()
        for ours in (self.profiled, self.placed):
            assert visible(ours.stdout) == visible(self.alone.stdout), ours.stderr.decode()
            assert ours.returncode == self.alone.returncode, ours.stderr.decode()
            assert visible(ours.stderr).startswith(visible(self.alone.stderr))

    def sensible(self) -> None:
        """Laws that hold for the object table of any program."""
        for item in self.profile["objects"]:
            assert item["name"]
            assert item["size_bytes"] > 0
            assert item["first_s"] <= item["last_s"]
        shares = [item["stall"]["share"] for item in self.profile["objects"] if "stall" in item]
        shares += [rest["stall"]["share"] for rest in self.profile.get("unattributed", [])]
        if self.profile["sampling"]["samples"]:
            assert sum(shares) == pytest.approx(1.0, abs=1e-6)
        assert self.profile["program"]["exit_code"] == self.alone.returncode
        assert self.profile["program"]["cpu_s"] > 0
        assert not [told for told in self.profile["sampling"]["warnings"] if "events were lost" in told]


ThreeWays = Callable[[str], Ways]


@pytest.fixture
def three_ways(executable: Path, folder: Path) -> ThreeWays:
    """Runs one of the programs of `real.py` alone, under `profile`, and under `run`."""

    def call(name: str) -> Ways:
        program = next(program for program in real.PROGRAMS if program.name == name)
        if missing := program.missing():
            pytest.skip(missing)
        for parent in (folder, *folder.parents[:3]):
            if "pytest" in parent.name:
                parent.chmod(0o755)
        plan = folder / "real.plan.toml"
        plan.write_text(real.PLAN)
        alone = program.run(folder / "alone")
        profiled = program.run(folder / "profiled", str(executable), "profile", "-o", str(folder / "it.profile"), "--")
        written = folder / "it.profile" / "profile.json"
        assert written.exists(), profiled.stderr.decode()
        placed = program.run(folder / "placed", str(executable), "run", "--plan", str(plan), "--")
        return Ways(program, alone, profiled, placed, json.loads(written.read_text(encoding="utf-8")))

    return call


@pytest.fixture
def installed(request: pytest.FixtureRequest) -> None:
    """Skips a test whose program is not on this machine: `@pytest.mark.needs("redis-server")`."""
    for marker in request.node.iter_markers("needs"):
        for program in marker.args:
            if shutil.which(program) is None:
                pytest.skip(f"{program} is not installed here; .ci/run installs it")
