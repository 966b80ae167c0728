"""Static arrays of a program and its libraries, as Tierloom names them.

Data symbols of 32 KiB and more are objects; in a module without data symbols its sections are; what is left of a
module's data is one object of all.
"""

import re
import subprocess
from pathlib import Path
from typing import NamedTuple

LEAST_BYTES = 32 << 10
REST = "[other statics]"
SECTIONS = (".data", ".bss", ".lbss", ".ldata", ".rodata")
SECTION = re.compile(r"\[ *\d+\] (\S+)\s+\S+\s+(\w+) \w+ (\w+) \w+\s+W?A", re.MULTILINE)
SYMBOL = re.compile(r"^ *\d+: (\w+) +(\w+) OBJECT +\w+ +\w+ +\w+ (\S+)", re.MULTILINE)


class Static(NamedTuple):
    """A stretch of a module's data."""

    module: str
    offset: int
    bytes: int
    name: str


def readelf(path: Path, *options: str) -> str:
    """What readelf says."""
    return subprocess.run(["readelf", "-W", *options, path], check=True, capture_output=True, text=True).stdout


def libraries(path: Path) -> list[Path]:
    """What a program is linked with."""
    found = subprocess.run(["ldd", path], check=False, capture_output=True, text=True).stdout
    return [Path(one) for one in re.findall(r"(/\S+) \(0x", found)]


def of_module(path: Path, module: str) -> list[Static]:
    """The module as a whole first, then what is told apart in it."""
    sections = [(name, int(at, 16), int(size, 16)) for name, at, size in SECTION.findall(readelf(path, "-S"))]
    symbols = [(name, int(at, 16), int(size, 0)) for at, size, name in SYMBOL.findall(readelf(path, "-s"))]
    symbols = [(name.partition("@")[0], at, size) for name, at, size in symbols if at and size]
    apart = symbols or [one for one in sections if one[0] in SECTIONS]
    large = sorted({one for one in apart if one[2] >= LEAST_BYTES})
    rest = [Static(module, at, size, REST) for name, at, size in sections if not name.startswith((".tbss", ".tdata"))]
    return rest + [Static(module, at, size, name) for name, at, size in large]


def statics(executable: Path) -> list[Static]:
    """All of them; the program itself is called `-`."""
    found = of_module(executable, "-")
    return found + [one for path in libraries(executable) for one in of_module(path, path.name)]
