"""Real programs: where they come from, how they are built, what they are given to do.

Sources are cloned at a fixed commit into `.sources` of the programs' folder, never into this repository. Programs of
the distribution are taken as they are installed.
"""

import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from . import inputs
from .program import Program

SOURCES = ".sources"


@dataclass(frozen=True)
class Repository:
    """Somebody's sources, at one commit."""

    url: str
    commit: str

    def cloned(self, programs: Path) -> Path:
        """Where it lies, cloned if need be."""
        into = programs / SOURCES / self.url.rsplit("/", 1)[-1]
        if not into.exists():
            subprocess.run(["git", "clone", "-q", self.url, into], check=True)
            subprocess.run(["git", "checkout", "-q", self.commit], cwd=into, check=True)
        return into


NPB = Repository("https://github.com/GMAP/NPB-CPP", "5bc1e2c4aca09f4ebae370b80f8f335a76e162ef")
GAPBS = Repository("https://github.com/sbeamer/gapbs", "b5e3e19c2845f22fb338f4a4bc4b1ccee861d026")
XSBENCH = Repository("https://github.com/ANL-CESAR/XSBench", "ba08e5221af6106252b866e50ea123c69d31a4e2")
STREAM = Repository("https://github.com/jeffhammond/STREAM", "6703f7504a38a8da96b353cadafa64d3c2d7a2d3")
BTREE = Repository(
    "https://github.com/mitosis-project/mitosis-workload-btree", "a5bfde93349320a3c6250b896adb0f94acc7af57"
)


@dataclass(frozen=True)
class Real:
    """A real program and its work."""

    name: str
    command: str
    about: str
    repository: Repository | None = None
    build: str = ""
    """A line of shell, run in the clone."""
    built: str = ""
    """The file that it makes there."""
    inputs: tuple[str, ...] = ()
    stdin: str | None = None
    environment: dict[str, str] = field(default_factory=dict)


def threaded(name: str, threads: int) -> tuple[str, str, dict[str, str]]:
    """A program's name, what is said of its threads, and the environment that makes so many."""
    words = "1 thread" if threads == 1 else f"{threads} threads"
    return name if threads == 1 else f"{name}-{threads}", words, {"OMP_NUM_THREADS": str(threads)}


def npb(kernel: str, size: str, threads: int) -> Real:
    """A NAS benchmark; its arrays come from the heap."""
    name, words, environment = threaded(f"npb-{kernel}.{size}", threads)
    folder, openmp = ("NPB-OMP", " -fopenmp") if threads > 1 else ("NPB-SER", "")
    flags = f'CFLAGS="-O2 -g -mcmodel=medium{openmp}" CLINKFLAGS="-O2 -mcmodel=medium{openmp}"'
    build = f"mkdir -p {folder}/bin && make -C {folder} {kernel} CLASS={size} {flags}"
    about, file = f"NAS {kernel.upper()} class {size}, {words}, g++ -O2", f"{kernel}.{size}"
    return Real(name, f"./{file}", about, NPB, build, f"{folder}/bin/{file}", environment=environment)


def gapbs(kernel: str, work: str, threads: int = 1) -> Real:
    """A kernel of the GAP benchmark suite on a Kronecker graph."""
    name, words, environment = threaded(f"gapbs-{kernel}", threads)
    about = f"GAP {kernel} {work}, {words}, g++ -O3"
    return Real(name, f"./{kernel} {work}", about, GAPBS, f"make {kernel}", kernel, environment=environment)


def everyday() -> list[Real]:
    """Programs of the distribution, and NumPy."""
    sort, zstd = "/usr/bin/sort --parallel=1 -k2n numbers.txt -o sorted.txt", "/usr/bin/zstd -12 --single-thread -q -c"
    return [
        Real("sort", sort, "coreutils sort", inputs=("numbers.txt",), environment={"LC_ALL": "C"}),
        Real("gzip", "/usr/bin/gzip -c -6 prose.txt", "gzip -6", inputs=("prose.txt",)),
        Real("zstd", f"{zstd} prose.txt", "zstd -12", inputs=("prose.txt",)),
        Real(
            "sqlite3", "/usr/bin/sqlite3 :memory:", "sqlite3: scan, index, join", inputs=("work.sql",), stdin="work.sql"
        ),
        Real("numpy", f"{sys.executable} work.py", "python3 with NumPy", inputs=("work.py",)),
    ]


def alone() -> list[Real]:
    """Programs that are one of their kind."""
    stream = "gcc -O2 -DSTREAM_ARRAY_SIZE=5000000 -DNTIMES=40 stream.c -o stream"
    xsbench = "./XSBench -s small -m event -l 300000 -t 1"
    btree = 'make bin/bench_btree_st CFLAGS="-O3 -march=x86-64-v3"'
    built = "openmp-threading/XSBench"
    return [
        Real("stream", "./stream", "STREAM of 5 million, gcc -O2", STREAM, stream, "stream"),
        Real("xsbench", xsbench, "XSBench small, event based", XSBENCH, "make -C openmp-threading CC=gcc", built),
        Real(
            "btree",
            "./bench_btree_st -- -n 4000000 -l 12000000",
            "B-tree of Mitosis",
            BTREE,
            btree,
            "bin/bench_btree_st",
        ),
    ]


KERNELS = ("bt", "sp", "lu", "ft", "cg", "mg", "is", "ep")
SIZES = {"S": KERNELS, "W": KERNELS, "A": ("cg", "mg", "ft", "is")}
GRAPHS = {"bfs": "-g 18 -n 30", "pr": "-g 17 -n 4", "cc": "-g 18 -n 20", "sssp": "-g 16 -n 8", "bc": "-g 16 -n 6"}

ALL = [npb(kernel, size, 1) for size, kernels in SIZES.items() for kernel in kernels]
ALL += [npb(kernel, "W", 2) for kernel in KERNELS]
ALL += [gapbs(kernel, work) for kernel, work in GRAPHS.items()]
ALL += [gapbs("tc", "-g 14 -n 1"), gapbs("pr", GRAPHS["pr"], 2), gapbs("bfs", GRAPHS["bfs"], 2), *alone(), *everyday()]
REAL = {real.name: real for real in ALL}


def program(name: str, programs: Path) -> Program:
    """A real program, ready to run in a folder of its own."""
    real, folder = REAL[name], programs / name
    if not (folder / "program.json").exists():
        folder.mkdir(parents=True, exist_ok=True)
        if real.repository:
            clone = real.repository.cloned(programs)
            subprocess.run(real.build, cwd=clone, check=True, shell=True, capture_output=True)  # noqa: S602 (ours)
            shutil.copy(clone / real.built, folder)
        for file in real.inputs:
            inputs.write(file, folder)
        Program(name, tuple(real.command.split()), folder, real.about, real.environment, real.stdin).write()
    return Program.read(folder)
