"""Hard cases of life under a preload library: each program must not notice us at all.

Each case is a small program that was hard for a tool of this kind at some time; it runs alone, under
`profile` and under `run`, and must have the same output and the same exit code.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support import LIBRARIES
from three_ways import written_plan

from tierloom.debian import packages

if TYPE_CHECKING:
    from torture.conftest import Compile, Torture

pytestmark = [pytest.mark.live, pytest.mark.slow]


@pytest.mark.parametrize("way", ["return", "exit", "_exit", "quick_exit", "abort", "segv", "kill", "term"])
def test_ways_to_end(compiled: Compile, torture: Torture, way: str) -> None:
    codes = {"return": 3, "exit": 7, "_exit": 5, "quick_exit": 9}
    signals = {"abort": signal.SIGABRT, "segv": signal.SIGSEGV, "kill": signal.SIGKILL, "term": signal.SIGTERM}
    ran = torture(compiled("exits.c"), way)
    ran.unharmed()
    assert ran.alone.returncode == (codes[way] if way in codes else -signals[way])
    flushed = way in ("return", "exit")
    assert (b"buffered" in ran.alone.stdout and b"destructor sees d" in ran.alone.stdout) is flushed


@pytest.mark.parametrize(
    "program", ["family", "early", "forks", "foreign", "handlers", "overflow", "maps", "coroutines", "exhausted"]
)
def test_programs_that_check_themselves(compiled: Compile, torture: Torture, program: str) -> None:
    ran = torture(compiled(f"{program}.c"))
    ran.unharmed()
    assert ran.alone.returncode == 0, ran.alone.stdout.decode()
    ran.complete()


@pytest.mark.parametrize("stack", ["overflowed", "overflowed-in-a-thread", "variable", "endless"])
def test_stacks_that_lead_nowhere(compiled: Compile, torture: Torture, stack: str) -> None:
    ran = torture(compiled("stacks.c"), stack)
    ran.unharmed()
    assert (ran.alone.returncode, ran.alone.stdout) == (0, b"all allocated\n")
    ran.complete()


def test_spawned_programs_and_exec_chains(compiled: Compile, torture: Torture) -> None:
    ran = torture(compiled("spawns.c"))
    ran.unharmed()
    assert ran.alone.stdout.endswith(b"bare environment 0\n")
    assert ran.alone.returncode == 21
    chain = torture(compiled("spawns.c"), "chain", "20")
    chain.unharmed()
    assert chain.alone.returncode == 17
    assert chain.allocations("chain") == 21


def test_libraries_opened_by_runpath_closed_and_replaced(compiled: Compile, torture: Torture, folder: Path) -> None:
    (folder / "lib").mkdir()
    for name, pad in (("a", 0), ("b", 100)):
        flags = ("-shared", "-fPIC", f"-DPAD={pad}")
        compiled("plugin.c", *flags, output=f"lib/libplugin_{name}.so")
    ran = torture(compiled("opens.c", "-Wl,-rpath,$ORIGIN/lib", "-Wl,--enable-new-dtags"))
    ran.unharmed()
    assert ran.alone.stdout.endswith(b"no libnone\n")
    made = [item for item in ran.profile["objects"] if item["name"].startswith("plugin_work")]
    modules = {item["site"]["stack"][0]["module"]: item["allocations"] for item in made}
    assert modules == {"libplugin_a.so": 20, "libplugin_b.so": 20}


def test_threads_that_compute_between_calls_that_return_by_themselves(compiled: Compile, torture: Torture) -> None:
    ran = torture(compiled("brief_calls.c", "-O2"))
    ran.unharmed()
    assert ran.alone.returncode == 23
    assert b"turns 12000, alarms many" in ran.alone.stdout


def test_a_library_takes_the_place_of_another_under_a_thread(compiled: Compile, torture: Torture) -> None:
    for answer in (1, 2):
        compiled("answer.c", "-shared", "-fPIC", f"-DANSWER={answer}", output=f"libanswer_{answer}.so")
    ran = torture(compiled("swaps.c", "-Wl,-rpath,$ORIGIN"))
    ran.unharmed()
    assert ran.alone.stdout == b"wrong 0, at another place 0\n"


@pytest.mark.parametrize("flags", [(), ("-DWRAPS",)])
def test_an_allocator_in_the_program(compiled: Compile, torture: Torture, flags: tuple[str, ...]) -> None:
    ran = torture(compiled("allocator.c", *flags))
    ran.unharmed()
    assert ran.alone.stdout.endswith(b", ours\n")


@pytest.mark.parametrize(
    ("allocator", "flags"),
    [
        ("libc", ()),
        ("libc", ("-static",)),
        ("libc", ("-static-pie",)),
        ("jemalloc", ("-ljemalloc",)),
        ("jemalloc", ("-Wl,-Bstatic", "-ljemalloc", "-Wl,-Bdynamic", "-ldl", "-lm")),
        ("mimalloc", ("-DABORTS", "-Wl,--no-as-needed", "-lmimalloc")),
        ("tcmalloc", ("-Wl,--no-as-needed", "-ltcmalloc_minimal")),
        ("tcmalloc", ("-Wl,-Bstatic,--whole-archive", "-ltcmalloc_minimal", "-Wl,-Bdynamic,--no-whole-archive")),
    ],
)
def test_other_allocators(compiled: Compile, torture: Torture, allocator: str, flags: tuple[str, ...]) -> None:
    ran = torture(compiled("churn.cpp", *flags))
    ran.unharmed()
    assert ran.alone.stdout.decode().endswith(f" no memory {allocator}\n")
    ran.complete()


@pytest.mark.parametrize("allocator", LIBRARIES)
def test_allocators_that_are_preloaded_too(compiled: Compile, torture: Torture, allocator: str) -> None:
    library = next(Path("/usr/lib/x86_64-linux-gnu").glob(f"lib{allocator}.so.*"), None)
    if library is None:
        pytest.skip(f"lib{allocator} is not installed here: {packages.named(LIBRARIES[allocator]).hint}")
    aborts = ("-DABORTS",) if allocator == "mimalloc" else ()
    ran = torture(compiled("churn.cpp", *aborts), variables={"LD_PRELOAD": str(library)})
    ran.unharmed()
    assert ran.alone.stdout.decode().endswith(f" no memory {allocator.split('.')[0].split('_')[0]}\n")
    ran.complete()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a program away")
def test_a_program_with_its_owners_rights(compiled: Compile, torture: Torture, folder: Path) -> None:
    program = compiled("setid.c")
    for part in (folder, *folder.parents[:3]):
        if part.stat().st_uid == 0:
            part.chmod(part.stat().st_mode | 0o755)
    os.chown(program, 65534, 65534)
    program.chmod(0o4755)
    ran = torture(program)
    if ran.alone.stdout == b"own rights\n":
        pytest.skip("this file system gives no rights to programs (nosuid)")
    ran.unharmed()
    assert any("owner's rights" in warning for warning in ran.warnings())
    chained = torture("sh", "-c", f"{program}; echo $?")
    chained.unharmed()
    assert chained.alone.stdout == b"owner's rights\n4\n"


def test_512_threads_on_small_stacks(compiled: Compile, torture: Torture) -> None:
    ran = torture(compiled("crowd.c"))
    ran.unharmed()
    assert ran.alone.returncode == 0
    ran.complete()
    assert ran.allocations("work") == 512 * (20 + 13), "all of malloc, those of realloc that stay above the threshold"


def test_ten_million_allocations(compiled: Compile, torture: Torture) -> None:
    ran = torture(compiled("many.c"))
    ran.unharmed()
    ran.complete()
    assert ran.allocations() == 10_000_000 / 500


def test_a_hundred_thousand_recorded_blocks_alive(compiled: Compile, torture: Torture) -> None:
    ran = torture(compiled("alive.c"))
    ran.unharmed()
    ran.complete()
    (first,), (second,) = ran.objects("first_half"), ran.objects("second_half")
    for half in (first, second):
        assert half["allocations"] == 50_000
        assert half.get("address_bytes", half["size_bytes"]) == 50_000 * 32768
    assert first["last_s"] < second["last_s"], "half of them were given back, the others stayed"


SANITIZERS = [
    ("address", "none"),
    ("address", "leak"),
    ("address", "overrun"),
    ("address", "reuse"),
    ("undefined", "none"),
    ("undefined", "overflow"),
    ("thread", "none"),
    ("thread", "race"),
]


@pytest.mark.parametrize(("sanitizer", "fault"), SANITIZERS)
@pytest.mark.parametrize("runtime", ["shared", "static"])
def test_sanitizers(compiled: Compile, torture: Torture, sanitizer: str, fault: str, runtime: str) -> None:
    flags = [f"-fsanitize={sanitizer}", "-fno-sanitize-recover=all"]
    if runtime == "static":
        flags.append(
            {"address": "-static-libasan", "undefined": "-static-libubsan", "thread": "-static-libtsan"}[sanitizer]
        )
    ran = torture(compiled("faulty.c", *flags), fault)
    ran.unharmed(words_too=False)
    assert (ran.alone.returncode == 0) is (fault == "none")
    # Sets: how often two threads meet is chance.
    said = [
        set(re.findall(rb"ERROR: \w+Sanitizer: [\w-]+|runtime error: .*|WARNING: \w+: [\w ]+", result.stderr))
        for result in (ran.alone, ran.profiled, ran.placed)
    ]
    assert said[0] == said[1] == said[2]
    assert bool(said[0]) is (fault != "none")


def test_fortran_common_blocks(compiled: Compile, torture: Torture) -> None:
    ran = torture(compiled("common.f90"))
    ran.unharmed()
    assert ran.alone.returncode == 6
    for name, size in (("shared_", 800_000), ("__grid_MOD_field", 1_600_000)):
        assert [item["size_bytes"] for item in ran.objects(name)] == [size]


def test_a_daemons_habits(compiled: Compile, torture: Torture) -> None:
    ran = torture(compiled("quiet.c"))
    ran.unharmed()
    assert ran.alone.stdout == b"1000 2\n"
    assert ran.allocations("main") == 2000


@pytest.mark.needs("gdb")
def test_a_program_under_a_debugger(compiled: Compile, torture: Torture) -> None:
    orders = ("-ex", "break main", "-ex", "run", "-ex", "next", "-ex", "backtrace 1", "-ex", "continue")
    ran = torture("gdb", "-nx", "-q", "-batch", *orders, "--args", compiled("setid.c"))
    hidden = re.compile(rb"\(process \d+\)|0x[0-9a-f]+|Process \d+")
    assert b"exited with code 04" in ran.alone.stdout
    for result in (ran.profiled, ran.placed):
        assert hidden.sub(b"", result.stdout) == hidden.sub(b"", ran.alone.stdout)
        assert result.returncode == ran.alone.returncode


@pytest.mark.needs("gdb")
@pytest.mark.parametrize("verb", [("profile", "-o", "it.profile"), ("run", "--plan", "three_ways.plan.toml")])
def test_a_debugger_comes_to_a_running_program(
    compiled: Compile, executable: Path, folder: Path, verb: tuple[str, ...]
) -> None:
    written_plan(folder)
    words = [str(executable), *verb, "--", str(compiled("waits.c")), "pid"]
    with subprocess.Popen(words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as ours:
        pid = folder / "pid"
        end = time.monotonic() + 20
        while not (pid.exists() and pid.read_text().endswith("\n")) and time.monotonic() < end:
            time.sleep(0.01)
        # It may come to rest in the sampler's own code, where gdb would read the order as Rust.
        orders = ("-ex", "backtrace", "-ex", "set language c", "-ex", "set var looked = 1", "-ex", "detach")
        attach = ["gdb", "-nx", "-q", "-batch", "-p", pid.read_text().strip(), *orders]
        seen = subprocess.run(attach, capture_output=True, check=False)
        # While a window is open the program has a tracer: who comes then is refused, and comes again.
        while b"Operation not permitted" in seen.stderr and time.monotonic() < end:
            seen = subprocess.run(attach, capture_output=True, check=False)
        output, told = ours.communicate(timeout=90)
    assert b"main (" in seen.stdout, seen.stderr.decode()
    assert output == b"looked: 1\n", seen.stderr.decode() + told.decode()
    assert ours.returncode == 8
