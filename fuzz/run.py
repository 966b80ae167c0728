"""Feeds every parser with made-up bytes, one after the other, and says what each took and what broke.

    python fuzz/run.py [--seconds 60] [TARGET…]

Rust parsers by cargo-fuzz (nightly compiler, address sanitizer), Python readers by Atheris; both are libFuzzer.
`make fuzz` installs what is missing; with `TMPDIR` in memory, parsers that read files are fed faster. The exit
code is 1 where anything was found; the input that did it is in `fuzz/artifacts/TARGET`. Mend the parser, and keep
the input in `fuzz/corpus/TARGET`: the tests replay it.
"""

from __future__ import annotations

import argparse
import re
import resource
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
BINARIES = HERE / "target/x86_64-unknown-linux-gnu/release"
LIMITS = ["-timeout=10", "-rss_limit_mb=2048", "-print_final_stats=1"]
"""An input that takes longer, s, or more memory, MiB, is a finding."""
PYTHON = sorted(re.findall(r'^    "(\w+)": _law', (HERE / "python/readers.py").read_text(), re.MULTILINE))
RUST = sorted(path.stem for path in (HERE / "fuzz_targets").glob("*.rs"))


@dataclass(frozen=True)
class Run:
    """What feeding one target took."""

    target: str
    executions: int
    cpu_s: float
    reached: int
    findings: list[str]


def command(target: str) -> list[str]:
    """How a target is started, without its options."""
    if target in PYTHON:
        return [sys.executable, str(HERE / "python/fuzz.py"), target]
    found = HERE / "found" / target
    found.mkdir(parents=True, exist_ok=True)
    return [str(BINARIES / target), str(found), str(HERE / "corpus" / target)]


def feed(target: str, seconds: int) -> Run:
    """Feeds one target until the time is over or something is found."""
    artifacts = HERE / "artifacts" / target
    artifacts.mkdir(parents=True, exist_ok=True)
    before, old = resource.getrusage(resource.RUSAGE_CHILDREN), {*artifacts.iterdir()}
    words = [*command(target), f"-artifact_prefix={artifacts}/", f"-max_total_time={seconds}", *LIMITS]
    done = subprocess.run(words, capture_output=True, text=True, errors="replace", check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    executions = re.findall(r"stat::number_of_executed_units:\s*(\d+)", done.stderr) or ["0"]
    reached = re.findall(r"\bcov: (\d+)", done.stderr) or ["0"]
    found = sorted(path.name for path in {*artifacts.iterdir()} - old)
    if done.returncode and not found:
        found = [(done.stderr.strip().splitlines() or ["?"])[-1]]
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Run(target, int(executions[-1]), cpu_s, int(reached[-1]), found)


def main() -> int:
    """Builds, feeds, tells."""
    parser = argparse.ArgumentParser(description="Feed parsers with made-up bytes.")
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join([*RUST, *PYTHON])}")
    asked = parser.parse_args()
    targets = asked.targets or [*RUST, *PYTHON]
    if {*targets} & {*RUST}:
        subprocess.run(["cargo", "+nightly", "fuzz", "build"], cwd=HERE, check=True)
    print(f"{'target':<15} {'executions':>12} {'CPU s':>8} {'a CPU s':>9} {'reached':>8}  found", flush=True)
    broke = False
    for target in targets:
        run = feed(target, asked.seconds)
        rate = run.executions / max(run.cpu_s, 0.01)
        told = f"{run.target:<15} {run.executions:>12,} {run.cpu_s:>8.0f} {rate:>9,.0f} {run.reached:>8,}"
        print(f"{told}  {' '.join(run.findings) or '-'}", flush=True)
        broke = broke or bool(run.findings)
    return int(broke)


if __name__ == "__main__":
    sys.exit(main())
