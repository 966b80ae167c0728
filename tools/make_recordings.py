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
STAGE = Path("/tmp/tierloom-recordings")
LEVELS = ("O2", "O3")
TOOL = ROOT / "target" / "release" / "examples" / "analyse"
LIBRARY = ROOT / "python" / "tierloom" / "native" / "libtierloom_preload.so"

# So many rounds that there are some 1,500 to 2,500 samples, of which the building of the data has its part.
WORKLOADS = {
    "stream": ["--seconds", "1.6"],
    "gather": ["--seconds", "1.6"],
    "phases": ["--seconds", "1.6"],
    "cg": ["--seconds", "1.6"],
    "mg": ["--seconds", "1.6"],
    "fft": ["--seconds", "1.6"],
    "adi": ["--seconds", "1.6"],
    "ssor": ["--seconds", "1.6"],
    "xsbench": ["--seconds", "1.6"],
    "pagerank": ["--seconds", "0.8", "--size", "19"],
    "bfs": ["--seconds", "0.8", "--size", "19"],
    "btree": ["--seconds", "1.6"],
    "kvstore": ["--seconds", "1.6"],
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
    """Runs a program under the recorder; what it prints is not kept."""
    command = [str(STAGE / level / name)]
    if name in WORKLOADS:
        command += ["--threads", "1", *WORKLOADS[name], "--truth", str(folder / "truth.json")]
    words = [str(TOOL), str(STAGE / LIBRARY.name), os.devnull, *command]
    environment = {**os.environ, "SAVE": str(folder / "recording")}
    subprocess.run(words, check=True, env=environment, cwd=STAGE, stdout=subprocess.DEVNULL)


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
            print(f"{name}-{level}: {make(name, level) / 1000:.0f} kB", flush=True)


if __name__ == "__main__":
    main()
