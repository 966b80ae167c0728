"""Makes the recordings of tests/recordings/kept anew: all of them, or those of the programs that are named.

Each is a folder NAME-LEVEL with what ran (the program, without what an analysis does not read), what was
recorded of it (`recording`), and how often it really accessed its objects (`truth.json`): a workload of ours says so
itself, of the programs in tests/recordings/programs a second build does, in which every access is counted. They run
in a folder of their own, so that no recording names the folder of whoever made it.

    .venv/bin/python tools/make_recordings.py [NAME...]

Needs g++, objcopy, perf events, and an idle machine: the fewer share its processors, the better the samples.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KEPT = ROOT / "tests" / "recordings" / "kept"
STAGE = Path("/tmp/tierloom-recordings")  # noqa: S108 (what ran has no folder of ours in its path)
LEVELS = ("O2", "O3")
TOOL = ROOT / "target" / "release" / "examples" / "analyse"
LIBRARY = ROOT / "python" / "tierloom" / "native" / "libtierloom_preload.so"

# So many rounds that there are some 1,500 to 2,500 samples, of which the building of the data has its part.
# Not so many seconds: on a busy machine a run lasts longer and has as many samples.
WORKLOADS = {
    "stream": ["--iterations", "20"],
    "gather": ["--iterations", "3"],
    "phases": ["--iterations", "3"],
    "cg": ["--iterations", "10"],
    "mg": ["--iterations", "12"],
    "fft": ["--iterations", "6"],
    "adi": ["--iterations", "11"],
    "ssor": ["--iterations", "3"],
    "xsbench": ["--iterations", "3"],
    "pagerank": ["--iterations", "8", "--size", "21"],
    "bfs": ["--iterations", "2", "--size", "21"],
    "btree": ["--iterations", "3"],
    "kvstore": ["--iterations", "3"],
}
PROGRAMS = sorted(path.stem for path in (KEPT.parent / "programs").glob("*.c*"))
# Sections that no analysis reads.
IDLE = (".debug_loclists", ".debug_aranges", ".comment")


def build() -> None:
    """All programs at all levels into the stage; those of the workloads with names and lines alone, as the others."""
    shutil.rmtree(STAGE, ignore_errors=True)
    STAGE.mkdir()
    jobs = f"--jobs={os.cpu_count()}"
    paths = f"-ffile-prefix-map={ROOT}=."
    make = ["make", "--silent", jobs]
    for level in LEVELS:
        where = [f"OUT={STAGE / level}", f"OPT=-{level}", f"DEBUG=-g1 {paths}"]
        subprocess.run([*make, "-C", str(ROOT / "workloads"), *where], check=True)
    programs = [f"OUT={STAGE}", f"PATHS={paths}"]
    subprocess.run([*make, "-C", str(KEPT.parent / "programs"), *programs], check=True)
    shutil.copy(LIBRARY, STAGE)


def record(name: str, level: str, folder: Path) -> None:
    """Runs a program under the recorder; what it prints is not kept, what it counts is."""
    command = [str(STAGE / level / name)]
    if name in WORKLOADS:
        command += ["--threads", "1", *WORKLOADS[name], "--truth", "truth.json"]
    words = [str(TOOL), str(STAGE / LIBRARY.name), os.devnull, *command]
    environment = {**os.environ, "SAVE": str(folder / "recording")}
    subprocess.run(words, check=True, env=environment, cwd=STAGE, stdout=subprocess.DEVNULL)
    if name in WORKLOADS:
        shutil.move(STAGE / "truth.json", folder)


def count(name: str, folder: Path) -> None:
    """The counts of a program that does not count itself, from its second build."""
    done = subprocess.run([str(STAGE / "counted" / name)], check=True, capture_output=True)
    (folder / "truth.json").write_bytes(done.stdout)


def make(name: str, level: str) -> int:
    """One folder; its bytes."""
    folder = KEPT / f"{name}-{level}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    record(name, level, folder)
    if name not in WORKLOADS:
        count(name, folder)
    removed = [word for section in IDLE for word in ("--remove-section", section)]
    subprocess.run(["objcopy", *removed, str(STAGE / level / name), str(folder / name)], check=True)
    return sum(path.stat().st_size for path in folder.iterdir())


def main() -> None:
    """Prints a line a recording."""
    build()
    for name in sys.argv[1:] or [*WORKLOADS, *PROGRAMS]:
        for level in LEVELS:
            sys.stdout.write(f"{name}-{level}: {make(name, level) / 1000:.0f} kB\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
