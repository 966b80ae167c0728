"""The table of programs that nobody here wrote: each does work that is hard to watch, and says what it did.

Files are in `work/`. One that is not installed is named with the Debian package that it comes from.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from support import lacking
from unharmed.behaviour import hidden
from unharmed.building import built

WORK = Path(__file__).parent / "work"
LIBRARIES = "/usr/lib/x86_64-linux-gnu"


@dataclass(frozen=True)
class Program:
    """A program of the distribution, what it is asked to do, and what it must do on its own."""

    name: str
    package: str
    """The Debian packages that it takes."""
    command: tuple[str, ...]
    """A word `work/…` is a file of ours."""
    needs: tuple[str, ...] = ()
    """Executables and files; the first word of the command by default."""
    end: int = 0
    says: str = ""
    visible: Callable[[bytes], bytes] = bytes
    """Takes away what differs by its nature."""
    words: bool = True
    """Whether its stderr is the same in every run."""
    light: bool = False
    """Whether it is part of every test run."""
    variables: Mapping[str, str] = field(default_factory=dict)
    source: tuple[str, ...] = ()
    """A source file of `work/` and flags for the compiler: the program stands before the command."""

    def missing(self) -> str | None:
        """What is not here, with where it comes from."""
        return lacking(*(self.needs or self.command[:1]))

    def typed(self) -> list[str]:
        """The words of the command line."""
        program = [str(built(WORK / self.source[0], *self.source[1:]))] if self.source else []
        ours = (str(WORK / word[5:]) if word.startswith("work/") else word for word in self.command)
        return [*program, *ours]


def _tool(name: str, package: str = "", **more: object) -> Program:
    words = {"end": 0, "needs": (name,), "light": name in ("sort", "gawk", "sqlite3"), **more}
    return Program(name, package or name, ("sh", "work/tools.sh", name), **words)


def _shell(name: str) -> Program:
    pids = hidden((r".*Terminated.*\n", ""))
    return Program(name, name, (name, "work/shell.sh"), end=143, says="killed 143", visible=pids, light=name == "dash")


def _packer(name: str, package: str, command: str) -> Program:
    return Program(name, f"tar {package}", ("sh", "work/archive.sh", command), (name, "tar"), light=name == "zstd")


def _only(pattern: str) -> Callable[[bytes], bytes]:
    return lambda output: b"\n".join(re.findall(pattern.encode(), output))


def _sanitized(sanitizer: str, fault: str, end: int) -> Program:
    said = _only(r"began|ended|ERROR: \w+Sanitizer: [\w-]+|runtime error: .*|WARNING: \w+: [\w ]+|ptrace")
    flags = ("sanitized.cpp", f"-fsanitize={sanitizer}", "-fno-sanitize-recover=all", "-Wno-error")
    return Program(
        f"{sanitizer} sanitizer, {fault}", "g++", (fault,), ("g++",), end, "began", said, source=flags,
        light=fault == "leak",
    )  # fmt: skip


def _chained(name: str, package: str, library: str, **variables: str) -> Program:
    path = f"{LIBRARIES}/{library}"
    return Program(
        f"preloaded {name}", f"gcc {package}", (), ("gcc", path), 3, "alive 64", light=name == "jemalloc",
        variables={"LD_PRELOAD": path, **variables}, source=("churn.c",),
    )  # fmt: skip


def _runtime(name: str, package: str, command: str, end: int = 0, says: str = "", **more: object) -> Program:
    return Program(name, package, tuple(command.split()), end=end, says=says, **more)


JAVA = hidden((r"\n\tat .*", ""))
GO = hidden((r"(?s)runtime: goroutine stack exceeds.*", "full"), (r"0x[0-9a-f]+", "ADDRESS"))
ADDRESSES = hidden((r"0x[0-9a-f]+", "ADDRESS"), (r"==\d+==|process \d+|\[(New )?Thread [^]]*\]( exited)?\n", ""))
GO_CACHE = {"GOCACHE": "/tmp/unharmed-go", "GOFLAGS": "-modcacherw", "GO111MODULE": "off"}  # noqa: S108 (a cache)

RUNTIMES = (
    _runtime("python3", "python3", "/usr/bin/python3 work/runtime.py", 143, "ticks True", words=False, light=True),
    _runtime("perl", "perl", "perl work/runtime.pl", 143, "from a shell", light=True),
    _runtime("ruby", "ruby", "ruby work/runtime.rb", 6, "NoMethodError"),
    _runtime("lua", "lua5.4", "lua5.4 work/runtime.lua", 7, "attempt to index", light=True),
    _runtime("luajit", "luajit", "luajit work/runtime.lua", 7, "attempt to index"),
    _runtime("php", "php-cli", "php -n work/runtime.php", 8, "Division by zero"),
    _runtime("tcl", "tcl", "tclsh work/runtime.tcl", 4, "from a program"),
    _runtime("guile", "guile-3.0", "guile --no-auto-compile work/runtime.scm", 5, "9150000"),
    _runtime(
        "sbcl",
        "sbcl",
        "sbcl --noinform --non-interactive --no-sysinit --no-userinit --load work/runtime.lisp",
        6,
        "no list",
        words=False,
    ),
    _runtime("ocaml", "ocaml-nox", "ocaml work/runtime.ml", 7, "full"),
    _runtime("node", "nodejs", "node work/runtime.js", 5, "full: RangeError"),
    _runtime("java", "default-jdk-headless", "java -Xmx300m work/Runtime.java", 1, "full\nfull\nfull", visible=JAVA),
    _runtime("go", "golang-go", "go run work/runtime.go", 1, "exit status 3", visible=GO, variables=GO_CACHE),
)
"""Language runtimes: full stacks, null pointers, threads, children, garbage."""

SERVERS = (
    Program("redis", "redis-server", ("sh", "work/redis.sh"), ("redis-server", "redis-cli"), says="exit 0",
            visible=hidden((r"Background saving started", "saving"))),
    Program("postgres", "postgresql", ("sh", "work/postgres.sh"), ("psql", "setpriv", "/usr/lib/postgresql"),
            says="stopped 0", words=False),
    Program("nginx", "nginx-light curl", ("sh", "work/nginx.sh"), ("nginx", "curl"), says="ended"),
    Program("memcached", "memcached python3", ("sh", "work/memcached.sh"), ("memcached", "python3"), says="ended 0"),
)  # fmt: skip
"""Servers that go to the background, have workers, and end in order."""

COMPILERS = (
    Program("gcc", "gcc", ("sh", "-c", f"gcc -O2 -pthread -S -o - {WORK}/churn.c | cksum"), ("gcc",)),
    Program("g++", "g++", ("sh", "-c", f"g++ -std=c++17 -O1 -pthread -o it {WORK}/sanitized.cpp && ./it"), ("g++",),
            says="ended"),
    Program("broken source", "g++", ("sh", "-c", f"g++ -x c++ -c -o it.o {WORK}/runtime.ml 2>&1 | cksum"), ("g++",)),
    Program("git", "git", ("sh", "work/git.sh"), ("git",), says="merge"),
)  # fmt: skip
"""Compilers, and git."""

SHELLS = tuple(_shell(name) for name in ("bash", "dash", "zsh"))

PACKERS = (
    _packer("gzip", "gzip", "gzip -n"),
    _packer("bzip2", "bzip2", "bzip2"),
    _packer("xz", "xz-utils", "xz -1 --threads=2"),
    _packer("zstd", "zstd", "zstd -q -T2"),
    _packer("pigz", "pigz", "pigz -n -p 4"),
    Program("7z", "p7zip-full",
            ("sh", "-c", "seq 200000 > n && 7z a -bd -bso0 -mmt2 it.7z n && 7z x -so it.7z | cksum"), ("7z",)),
)  # fmt: skip

TOOLS = (
    _tool("sqlite3", end=1),
    _tool("gawk", end=3),
    _tool("mawk", end=3),
    _tool("sed"),
    _tool("sort", "coreutils"),
    _tool("jq"),
    _tool("bc", says="3.14159"),
    _tool("make"),
    _tool("rsync", says="same"),
    _tool("openssl"),
    _tool("convert", "imagemagick", needs=("/usr/bin/convert",)),
)

WATCHERS = (
    Program("strace", "strace",
            ("sh", "-c", "strace -f -qq -o log -e exit_group sh -c 'sh -c true; exit 3'; echo $?; grep -c exit log"),
            ("strace",), says="3\n2\n"),
    Program("gdb", "gdb gcc",
            ("sh", "-c", f"gcc -g -pthread -o it {WORK}/churn.c && gdb -nx -q -batch -ex 'break main' -ex run"
             " -ex 'next' -ex continue --args ./it"), ("gdb", "gcc"), says="exited with code 03", visible=ADDRESSES,
            words=False),
    Program("valgrind", "valgrind gcc",
            ("sh", "-c", f"gcc -g -pthread -o it {WORK}/churn.c && valgrind -q --error-exitcode=9 ./it"),
            ("valgrind", "gcc"), 3, "alive 64", ADDRESSES),
)  # fmt: skip
"""Programs that trace others themselves."""

SANITIZED = (
    _sanitized("address", "none", 0),
    _sanitized("address", "overflow", 1),
    _sanitized("address", "reuse", 1),
    _sanitized("address", "leak", 1),
    _sanitized("leak", "leak", 23),
    _sanitized("undefined", "undefined", 1),
    _sanitized("thread", "none", 0),
    _sanitized("thread", "race", 66),
)

CHAINED = (
    _chained("jemalloc", "libjemalloc2", "libjemalloc.so.2"),
    _chained("tcmalloc", "libtcmalloc-minimal4", "libtcmalloc_minimal.so.4"),
    _chained("mimalloc", "libmimalloc2.0", "libmimalloc.so.2"),
    _chained("eatmydata", "libeatmydata1", "libeatmydata.so"),
    _chained("faketime", "libfaketime", "faketime/libfaketimeMT.so.1", FAKETIME="@2112-01-01 00:00:00"),
)
"""Other libraries that are preloaded too."""

ALL = (*RUNTIMES, *SERVERS, *COMPILERS, *SHELLS, *PACKERS, *TOOLS, *WATCHERS, *SANITIZED, *CHAINED)
