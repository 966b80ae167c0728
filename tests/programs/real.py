"""Programs that nobody here wrote, and work for them that says by its output that it was done right.

Each piece of work starts in an empty folder with its files from `work/`. Its output must be the same
with us and without; what differs by its nature (times, rates, addresses) is named program by program
in `hide`, and nothing else may differ. `test_real_programs.py` beside this file runs the light ones,
`benches/real_programs.py` all.
"""

from __future__ import annotations

import random
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from support import lacking
from three_ways import Finished, Start

WORK = Path(__file__).parent / "work"
LINES = 400_000


@dataclass(frozen=True)
class Program:
    """A program, what it needs, and its work."""

    name: str
    command: tuple[str, ...]
    """What is run, in a folder with `files` in it."""
    files: tuple[str, ...] = ()
    """From `work/`; `numbers.txt` is made."""
    needs: tuple[str, ...] = ()
    """Executables; `module:NAME` is a Python module, a path is a file that must be there."""
    package: str = ""
    """Where it comes from, if not from the Debian package of its name."""
    says: bytes = b""
    """Part of its output, without which the work was not done."""
    hide: tuple[tuple[bytes, bytes], ...] = ()
    """Patterns of output that differs by its nature, and what stands for it."""
    version: tuple[str, ...] = ()
    """How to ask for its version, if not by `--version`."""
    heavy: bool = False
    """Too long, or too large to install, for every test run."""

    def missing(self) -> str | None:
        """What is not here, with where it comes from."""
        needs = self.needs or (self.command[0],)
        modules = [need.removeprefix("module:") for need in needs if need.startswith("module:")]
        without = next((module for module in modules if find_spec(module) is None), None)
        if without is not None:
            return f"{without} is not installed here: pip install {without}"
        return lacking(*(need for need in needs if not need.startswith("module:")))

    def run_in(self, folder: Path) -> Start:
        """Does the work in a folder of its own for every turn."""
        return lambda turn, *before: self.run(folder / turn, *before)

    def run(self, folder: Path, *before: str) -> Finished:
        """Does the work in an empty folder, behind the words of `tierloom profile` or `run`."""
        # Servers drop root's rights and still have to get in.
        folder.mkdir(mode=0o755)
        for file in self.files:
            if file == "numbers.txt":
                (folder / file).write_bytes(numbers())
            else:
                shutil.copy(WORK / file, folder)
        words = [*before, *self.command]
        return subprocess.run(words, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, check=False)

    def visible(self, output: bytes) -> bytes:
        """Output without what differs by its nature."""
        for pattern, instead in self.hide:
            output = re.sub(pattern, instead, output)
        return output

    def known_version(self) -> str:
        """First number with a dot that the program says about itself."""
        words = self.version or (self.command[0], "--version")
        told = subprocess.run(words, capture_output=True, check=False, timeout=60)
        found = re.search(r"\d+(?:[.:]\d+)+[\w.+-]*", (told.stdout + told.stderr).decode(errors="replace"))
        return found[0] if found else "?"


@cache
def numbers() -> bytes:
    """8 MB of text that packs and sorts like real data."""
    source = random.Random(1)
    return b"".join(b"%d %d tierloom\n" % (source.randrange(10**6), line % 997) for line in range(LINES))


ADDRESSES = ((rb"\(process \d+\)|process \d+", b"PROCESS"), (rb"0x[0-9a-f]+", b"ADDRESS"))
RATES = ((rb"\d+ \S+ ops in|: \d+ [\w-]+'s in|\d+\.\d+s", b"NUMBER"), (rb"\d+\.\d+k", b"RATE"))
LOG_TIMES = ((rb"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ \w+ \[\d+\]", b"TIME [PID]"),)
DURATION = ((rb"in \d+\.\d+s( \(\d+:\d+:\d+\))?", b"in TIME"),)
NUMPY = (sys.executable, "-c", "import numpy; print(numpy.__version__)")
DUCKDB = (sys.executable, "-c", "import duckdb; print(duckdb.__version__)")
TEXT = ("numbers.txt",)

PROGRAMS = (
    Program("gzip", ("gzip", "-c", "-n", "numbers.txt"), TEXT, says=b"\x1f\x8b"),
    Program("xz", ("xz", "-c", "-1", "--threads=2", "numbers.txt"), TEXT, package="xz-utils", says=b"\xfd7zXZ"),
    Program("sort", ("sort", "--parallel=2", "-k2,2n", "-k1,1", "numbers.txt"), TEXT, package="coreutils"),
    Program("gawk", ("gawk", "-f", "it.awk", "numbers.txt"), (*TEXT, "it.awk"), says=b"%d " % LINES),
    Program(
        "mawk", ("mawk", "-f", "it.awk", "numbers.txt"), (*TEXT, "it.awk"), says=b"%d " % LINES,
        version=("mawk", "-W", "version"),
    ),
    Program(
        "tar", ("sh", "-e", "pack.sh"), (*TEXT, "pack.sh"), ("tar", "gzip"), says=b"numbers.txt",
        version=("tar", "--version"),
    ),
    Program("bc", ("bc", "-l", "it.bc"), ("it.bc",), says=b"3.14159"),
    Program("make", ("make", "-j2", "-s"), ("Makefile",), says=b"done"),
    Program("sqlite3", ("sqlite3", "-init", "it.sql", ":memory:", ".quit"), ("it.sql",), says=b"150000|"),
    Program("gcc", ("gcc", "-O2", "-S", "-o", "/dev/stdout", "it.cpp"), ("it.cpp",), ("g++",), says=b"_Rb_tree"),
    Program(
        "g++", ("sh", "-c", "g++ -O1 -o it it.cpp && ./it"), ("it.cpp",), ("g++",), says=b"100003",
        version=("g++", "--version"),
    ),
    Program("git", ("sh", "git.sh"), (*TEXT, "git.sh"), ("git",), says=b" second", version=("git", "--version")),
    Program("perl", ("perl", "it.pl"), (*TEXT, "it.pl"), says=b"997 "),
    Program(
        "numpy and scipy", (sys.executable, "science.py"), ("science.py",), ("module:numpy", "module:scipy"),
        says=b"e+", version=NUMPY,
    ),
    Program(
        "numpy's own tests", (sys.executable, "numpy_tests.py"), ("numpy_tests.py",),
        ("module:numpy", "module:hypothesis"), says=b" passed", hide=DURATION, version=NUMPY, heavy=True,
    ),
    Program(
        "duckdb", (sys.executable, "duck.py"), ("duck.py",), ("module:duckdb",), says=b"[(2000000, ",
        version=DUCKDB, heavy=True,
    ),
    Program(
        "redis", ("sh", "redis.sh"), ("redis.sh",), ("redis-server", "redis-benchmark", "redis-cli"), "redis-server",
        b"exit 0", version=("redis-server", "--version"),
    ),
    Program(
        "postgres", ("sh", "postgres.sh"), ("postgres.sh",), ("psql", "pgbench", "setpriv", "/usr/lib/postgresql"),
        "postgresql", b"transactions actually processed: 1600/1600", LOG_TIMES, ("psql", "--version"), heavy=True,
    ),
    Program(
        "nginx", ("sh", "nginx.sh"), (*TEXT, "nginx.sh"), ("nginx", "curl"), "nginx-light curl", b"exit 0",
        version=("nginx", "-v"),
    ),
    Program(
        "nginx under ab", ("sh", "nginx.sh", "20000"), (*TEXT, "nginx.sh"), ("nginx", "curl", "ab"),
        "nginx-light curl apache2-utils", b"exit 0", version=("nginx", "-v"), heavy=True,
    ),
    Program(
        "openssl speed", ("sh", "speed.sh"), (*TEXT, "speed.sh"), ("openssl",), says=b"MD5", hide=RATES,
        version=("openssl", "version"), heavy=True,
    ),
    Program("java -version", ("java", "-version"), package="default-jre-headless", version=("java", "-version")),
    Program(
        "java", ("java", "-Xmx300m", "Sorts.java"), ("Sorts.java",), package="default-jdk-headless", says=b" 9999",
        version=("java", "-version"), heavy=True,
    ),
    Program("node", ("node", "it.js"), ("it.js",), package="nodejs"),
    Program(
        "gdb", ("sh", "debug.sh"), ("debug.sh", "it.c"), ("gdb", "gcc"), says=b"exited with code 04", hide=ADDRESSES,
        version=("gdb", "--version"),
    ),
    Program(
        "valgrind", ("sh", "check.sh"), ("check.sh", "it.c"), ("valgrind", "gcc"), says=b"479001600",
        version=("valgrind", "--version"),
    ),
    Program("R", ("Rscript", "it.R"), ("it.R",), package="r-base-core", heavy=True),
    Program("octave", ("octave-cli", "-q", "it.m"), ("it.m",), heavy=True),
    Program("ffmpeg", ("sh", "ffmpeg.sh"), ("ffmpeg.sh",), ("ffmpeg",), version=("ffmpeg", "-version"), heavy=True),
    Program(
        "imagemagick", ("sh", "images.sh"), ("images.sh",), ("/usr/bin/convert",),
        version=("/usr/bin/convert", "--version"), heavy=True,
    ),
)  # fmt: skip
"""All of them; one that is not installed says where it comes from."""
