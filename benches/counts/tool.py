"""The tool of Valgrind that counts by object, built from `valgrind/` with what the valgrind package brings."""

import subprocess
from functools import cache
from pathlib import Path

SOURCES = Path(__file__).parent / "valgrind"
LIBRARIES = Path("/usr/lib/x86_64-linux-gnu/valgrind")
TOOLS = Path("/usr/libexec/valgrind")
PLATFORM = ["-DVGA_amd64=1", "-DVGO_linux=1", "-DVGP_amd64_linux=1", "-DVGPV_amd64_linux_vanilla=1"]
FREESTANDING = ["-fno-stack-protector", "-fno-strict-aliasing", "-fno-builtin", "-fno-pie"]
LOADED_AT = "-Wl,-Ttext-segment=0x58000000"


def compile_(*words: object) -> None:
    """Runs gcc."""
    subprocess.run(["gcc", *map(str, words)], check=True)


@cache
def built(folder: Path) -> Path:
    """A folder that `VALGRIND_LIB` can name, with the tool and the library to preload."""
    newest = max(path.stat().st_mtime for path in SOURCES.iterdir())
    tool = folder / "objects-amd64-linux"
    if tool.exists() and tool.stat().st_mtime > newest:
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    for path in TOOLS.iterdir():
        (folder / path.name).unlink(missing_ok=True)
        (folder / path.name).symlink_to(path)
    compile_("-O2", "-fPIC", "-shared", SOURCES / "allocations.c", "-o", folder / "allocations.so")
    objects = []
    for name in ("objects", "caches"):
        objects.append(folder / f"{name}.o")
        given = ("-O2", *FREESTANDING, *PLATFORM, "-I/usr/include/valgrind")
        compile_(*given, "-c", SOURCES / f"{name}.c", "-o", objects[-1])
    parts = [LIBRARIES / f"lib{name}-amd64-linux.a" for name in ("coregrind", "vex", "gcc-sup")]
    link = ["-static", "-no-pie", "-nodefaultlibs", "-nostartfiles", "-u", "_start", LOADED_AT, "-Wl,--build-id=none"]
    compile_(*link, "-o", tool, *objects, *parts[:2], "-lgcc", parts[2])
    return folder
