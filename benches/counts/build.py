"""A random program, built, and given the rounds that make it run as long as it should."""

import math
import resource
import subprocess
from pathlib import Path

from .generator import plan, sources
from .plan import Plan
from .program import Program

RUSTC = ["rustc", "--edition=2021", "-Coverflow-checks=off", "program.rs", "-o", "program"]


def compiled(plan: Plan, folder: Path) -> None:
    """Writes the sources and compiles them."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = sources(plan)
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    command = ["gcc", "-std=gnu17", "-w", *texts, "-o", "program"] if plan.build.language == "c" else RUSTC
    subprocess.run([*command, *plan.build.flags], cwd=folder, check=True, capture_output=True, timeout=300)


def cpu_s(program: Path, rounds: int) -> float:
    """CPU time of so many rounds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([program, str(rounds)], check=True, capture_output=True, timeout=120)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def calibrated(program: Path, wanted_s: float) -> int:
    """Rounds that take about so long."""
    first = cpu_s(program, 1)
    rounds, longer = 2, cpu_s(program, 2)
    while longer - first < 0.1 and longer < wanted_s:
        rounds *= 3
        longer = cpu_s(program, rounds)
    each = max(longer - first, 0.001) / (rounds - 1)
    return max(math.ceil((wanted_s - first) / each), 2)


def random_program(seed: int, programs: Path) -> Program:
    """The program of a seed, in a folder of its own."""
    folder = programs / f"r{seed}"
    if not (folder / "program.json").exists():
        wanted = plan(seed)
        compiled(wanted, folder)
        rounds = calibrated(folder / "program", wanted.cpu_s)
        tags = [wanted.build.language, *wanted.build.flags, *(phase.shape.name for phase in wanted.phases)]
        Program(f"r{seed}", ("./program", str(rounds)), folder, " ".join(tags)).write()
    return Program.read(folder)
