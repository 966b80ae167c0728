"""Tries every perf.data file of a folder: read as `perf script` reads it, or refused for a reason.

Usage: .venv/bin/python tools/perfdata_corpus.py FOLDER [PERF]

FOLDER holds files of `perf record`, outside this repository: other tools' test data (google/perf_data_converter,
KDAB/perfparser, mstange/linux-perf-data), and what people left in their own repositories. PERF is the program to
compare with, `perf` by default. Each file is read by `tierloom profile --from` in a process of its own, within a minute
and 4 GiB; where the hint says to choose a program, that command is run. Of memory samples are compared, one by one,
time, thread, load or store, kernel or not, and addresses by their distances inside each mapping; by object, the mean
cycles of loads and of stores with perf's weights. Samples of time are thinned out to equal ones, so each of them must
be one of perf's, and CPU time the sum of all periods. Ends with the counts, and with 1 where a file differs or a
refusal has no reason that we know.
"""

from __future__ import annotations

import io
import re
import resource
import shlex
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tierloom import Profile

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    Rows = npt.NDArray[np.void]

SECONDS = 60
MEMORY = 4 << 30
REASONS = {
    "lack registers of user space": "samples of time without registers",
    "no sample with registers of 64-bit user code": "samples of time without registers",
    "is neither cpu-clock nor cycles nor memory accesses": "samples of another event",
    "data source of none says load or store": "samples of another event",
    "only that of x86-64 is followed": "code of another architecture",
    "trace of": "a trace, no samples",
    "is cut off or damaged": "no sample before the damage",
    "perf.data file of version 1": "version 1",
    "other byte order": "the other byte order",
    "does not begin like a perf.data file": "no perf.data file",
    "samples of several programs": "several programs",
}
"""Refusals that hold; what each says is checked against perf below."""
LINE = re.compile(
    r"\s*(?P<pid>-?\d+)/(?P<tid>-?\d+)\s+(?P<seconds>\d+)\.(?P<ns>\d+):\s+(?P<period>\d+)\s+(?P<event>\S.*?):\s+"
    r"(?:(?P<address>[0-9a-f]+)(?:\s+[0-9a-f]+ \|OP (?P<done>[^|]*)\|.*?(?:\s(?P<weight>\d+))?)?)?\s*$"
)
ROUNDING = 1e-9
"""Of means of a few thousand sums in doubles."""
CLOCKS = ("cpu-clock", "task-clock")
REGISTERS = 0.95
"""Least share of the time whose samples have registers: those of the kernel's own threads have none."""


@dataclass(frozen=True)
class Sample:
    """One that perf printed."""

    time_ns: int
    pid: int
    tid: int
    period: int
    event: str
    address: int
    done: str
    weight: int


def main(folder: Path, perf: str) -> int:
    """Tries all files; returns the exit status."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    counts: Counter[str] = Counter()
    for file in files:
        verdict, words = tried(file, perf)
        counts[verdict] += 1
        print(f"{verdict}: {file.relative_to(folder)}: {words}")  # noqa: T201 (a tool's answer)
    for what, number in sorted(counts.items()):
        print(f"{number:5} {what}")  # noqa: T201
    print(f"{len(files):5} files")  # noqa: T201
    return 1 if any(what.startswith("WRONG") for what in counts) else 0


def tried(file: Path, perf: str) -> tuple[str, str]:
    """What became of one file, and in words."""
    with tempfile.TemporaryDirectory(prefix="perfdata-corpus-") as folder:
        output = Path(folder) / "tried.profile"
        told = run(["profile", "--from", str(file)], output)
        chosen = re.search(r"^hint: choose one: tierloom (.*)", told, re.MULTILINE)
        process = None
        if chosen:
            words = shlex.split(chosen[1])
            process = words[-1]
            told = run(words, output)
        if not (output / "profile.json").exists():
            return refused(file, told, perf)
        seen = list(samples(file, perf))
        if not seen:
            return "read, and not by this perf", f"{len(rows_of(output))} samples"
        unlike = differences(output, seen, process)
        kind = Profile.load(output).data["sampling"]["event"]
        verdict = f"read as perf reads it ({kind})" if not unlike else "WRONG: differs from perf"
        return verdict, "; ".join(unlike)


def run(words: list[str], output: Path) -> str:
    """What the command says, without the breaks of its lines; a hint begins one."""
    command = [str(Path(sys.executable).with_name("tierloom")), *words, "-o", str(output)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, preexec_fn=limited, check=False)
    except subprocess.TimeoutExpired:
        return "HANGS"
    joined = re.sub(r" *\n(?!hint:)", " ", done.stderr)
    return joined if done.returncode in (0, 2) else f"STATUS {done.returncode}: {joined}"


def limited() -> None:
    """In the child: a file that takes more memory than this is one that fills it."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def refused(file: Path, told: str, perf: str) -> tuple[str, str]:
    """A refusal, held against what perf sees in the file."""
    known = next((why for part, why in REASONS.items() if part in told.partition("\nhint:")[0]), None)
    if known is None or told.startswith(("HANGS", "STATUS")) or "\nhint: " not in told:
        return "WRONG: no known reason, or no hint", told
    if known.startswith("samples of"):
        seen = list(samples(file, perf))
        if any("LOAD" in sample.done or "STORE" in sample.done for sample in seen):
            return "WRONG: refused with loads or stores", told
    if known == "no sample before the damage" and next(samples(file, perf), None):
        return "WRONG: refused with samples", told
    return f"refused: {known}", told.partition("\nhint:")[0].rpartition(f"{file.name}: ")[2][:200]


def samples(file: Path, perf: str) -> Iterator[Sample]:
    """What perf prints; a field that a file has not is left out."""
    common = "pid,tid,time,event,period"
    for fields in (f"{common},addr,data_src,weight", f"{common},addr,data_src", f"{common},addr", common):
        command = [perf, "script", "--force", "--ns", "-i", str(file), "-F", fields]
        done = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, check=False)
        if done.returncode == 0:
            break
    for line in done.stdout.decode(errors="replace").splitlines():
        if found := LINE.fullmatch(line):
            time_ns = int(found["seconds"]) * 10**9 + int(found["ns"])
            numbers = (time_ns, int(found["pid"]), int(found["tid"]), int(found["period"]))
            address, weight = int(found["address"] or "0", 16), int(found["weight"] or "0")
            yield Sample(*numbers, found["event"], address, found["done"] or "", weight)


def differences(output: Path, theirs: list[Sample], process: str | None) -> list[str]:
    """In words, between a profile and perf's samples."""
    profile = Profile.load(output)
    rows = rows_of(output)
    if profile.data["sampling"]["event"] == "perf-mem":
        return differences_of_memory(profile, rows, theirs, process)
    return differences_of_time(profile, rows, theirs)


def rows_of(output: Path) -> Rows:
    """The samples of a profile."""
    rows: Rows = np.load(io.BytesIO((output / "samples.npy").read_bytes()))
    return rows


def differences_of_memory(profile: Profile, rows: Rows, theirs: list[Sample], process: str | None) -> list[str]:
    """Each row must be perf's sample at the same place of the order."""
    wanted = [one for one in theirs if one.address and ("LOAD" in one.done or "STORE" in one.done)]
    if process is not None:
        threads = {int(row["thread"]) for row in rows}
        wanted = [one for one in wanted if one.tid in threads]
    wanted.sort(key=lambda one: one.time_ns)
    if len(rows) != len(wanted):
        return [f"{len(rows)} accesses, perf {len(wanted)}"]
    # perf keeps the order of the file at equal times; ours may not, so these are put in one order.
    order = sorted(range(len(rows)), key=lambda at: (int(rows[at]["time_ns"]), int(rows[at]["thread"])))
    wanted.sort(key=lambda one: (one.time_ns, one.tid))
    unlike: list[str] = []
    starts: dict[int, int] = {}
    shift = wanted[0].time_ns - int(rows[order[0]]["time_ns"])
    names = [rest["name"] for rest in profile.data["unattributed"]]
    cycles: dict[tuple[int, str], list[Sample]] = defaultdict(list)
    for at, one in zip(order, wanted, strict=True):
        row = rows[at]
        number = int(row["object"])
        is_kernel = number < 0 and names[-1 - number] == "[kernel]"
        cycles[number, "load_cycles" if "LOAD" in one.done else "store_cycles"].append(one)
        start = starts.setdefault(number, one.address - int(row["offset"])) if number >= 0 else None
        mine = (int(row["time_ns"]) + shift, int(row["thread"]), int(row["access"]) == 2, is_kernel)
        its = (one.time_ns, one.tid, "LOAD" not in one.done, one.address >= 1 << 63)
        if mine != its:
            unlike.append(f"{mine}, perf {its}")
        elif start is not None and start + int(row["offset"]) != one.address:
            unlike.append(f"address {start + int(row['offset']):#x}, perf {one.address:#x}")
    return [*unlike, *differences_of_cycles(profile, cycles)][:3]


def differences_of_cycles(profile: Profile, theirs: dict[tuple[int, str], list[Sample]]) -> list[str]:
    """Mean cycles of loads and of stores, by object: those of perf's weights, each as often as its period says.

    What belongs to no object has no such mean in a profile.
    """
    unlike = []
    for (number, key), seen in sorted(theirs.items()):
        if number < 0:
            continue
        owner = profile.data["objects"][number]
        times = [one.period or 1 for one in seen]
        mean = sum(one.weight * count for one, count in zip(seen, times, strict=True)) / sum(times)
        told = owner.get("data_source", {}).get(key) or 0.0
        if abs(told - mean) > ROUNDING * mean:
            unlike.append(f"{owner['name']}: {key} {told}, perf {mean}")
    return unlike


def differences_of_time(profile: Profile, rows: Rows, theirs: list[Sample]) -> list[str]:
    """Each row must be a sample of perf's, and CPU time what all of them come to."""
    timed = [one for one in theirs if "cycles" in one.event or one.event.startswith(CLOCKS)]
    unlike = []
    seen = {(one.time_ns, one.tid) for one in timed}
    times = sorted({one.time_ns for one in timed})
    shifts = [time - int(rows[0]["time_ns"]) for time in times]
    if not any(all((int(row["time_ns"]) + shift, int(row["thread"])) in seen for row in rows) for shift in shifts):
        unlike.append("rows that perf does not have")
    told_s = profile.data["program"]["cpu_s"]
    all_s = sum(one.period for one in timed) * 1e-9 / (ghz(profile) or 1)
    if not all_s * REGISTERS <= told_s <= all_s * 1.005:
        unlike.append(f"CPU time {told_s:.4f} s of periods of {all_s:.4f} s")
    return unlike


def ghz(profile: Profile) -> float | None:
    """The clock that cycles were read by, as its warning says it; None for samples of a clock."""
    words = " ".join(told["text"] for told in profile.data["sampling"]["warnings"])
    found = re.search(r"read as CPU time at ([\d.]+) GHz", words)
    return float(found[1]) if found else None


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    sys.exit(main(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "perf"))
