"""Trees of ``/sys`` as hwloc-gather-topology packs them: opened beside the work, read, and gone again.

An archive may come from anywhere. Only files, and links that stay inside, are taken out of it; a name that leaves
it, or more bytes than any machine's ``/sys`` has, ends the reading.
"""

from __future__ import annotations

import lzma
import tarfile
import tempfile
import zlib
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from tierloom.errors import MachineError
from tierloom.machine_formats import sysfs
from tierloom.machine_formats.texts import flaw

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tierloom.machine_formats.sketch import Sketch

MAGIC = {0: (b"\x1f\x8b", b"BZh", b"\xfd7zXZ\0"), 257: (b"ustar",)}
"""What gzip, bzip2, xz and a plain archive hold, by where."""
NOT_OPENED = {b"PK\x03\x04": "zip", b"7z\xbc\xaf\x27\x1c": "7z", b"\x28\xb5\x2f\xfd": "zstd"}
"""What other archives begin with."""
MOST_BYTES = 256 << 20
MOST_FILES = 1 << 20
"""A ``/sys`` of 1024 CPUs is a tenth of either."""
HINT = "give the archive that hwloc-gather-topology wrote, or a folder that holds proc and sys"


def is_archive(path: Path) -> bool:
    """Whether a file is an archive, packed or not.

    Raises:
        MachineError: It is one that is not opened.
    """
    with path.open("rb") as file:
        head = file.read(512)
    for magic, name in NOT_OPENED.items():
        if head.startswith(magic):
            raise flaw(path, "", f"an archive of {name}, which is not opened here", "unpack it, and give what it holds")
    return any(head[at : at + len(magic)] == magic for at, known in MAGIC.items() for magic in known)


def read(path: Path) -> Sketch:
    """Reads the tree in an archive.

    Raises:
        MachineError: It is no whole archive, is not safe to open, or holds no machine.
    """
    with tempfile.TemporaryDirectory(prefix="tierloom-tree-") as made:
        folder = Path(made).resolve()
        with _whole(path):
            _unpack(path, folder)
        root = _root(folder)
        if root is None:
            raise flaw(path, "", "holds no machine's sys/devices/system", HINT)
        try:
            return sysfs.read(root)
        except MachineError as problem:
            raise MachineError(str(problem).replace(str(root), str(path))) from problem


@contextmanager
def _whole(path: Path) -> Iterator[None]:
    try:
        yield
    except (tarfile.TarError, EOFError, OSError, zlib.error, lzma.LZMAError) as problem:
        # tarfile tells one line for each way in which it tried to open the file.
        first = str(problem).partition("\n")[0].rstrip(":")
        raise flaw(path, "", f"no whole archive of files: {first}", HINT) from problem


def _unpack(path: Path, folder: Path) -> None:
    links, total = [], 0
    with tarfile.open(path) as archive:
        for number, member in enumerate(archive):
            place = _place(member.name, path, folder)
            total += member.size
            if total > MOST_BYTES or number >= MOST_FILES:
                raise flaw(path, "", "is larger than any machine's /sys", HINT)
            if member.isfile() and (content := archive.extractfile(member)):
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(content.read())
            elif member.isdir():
                place.mkdir(parents=True, exist_ok=True)
            elif member.issym():
                links.append((place, member.linkname))
    _link(links, folder)


def _place(name: str, path: Path, folder: Path) -> Path:
    parts = PurePosixPath(name)
    if parts.is_absolute() or ".." in parts.parts:
        raise flaw(path, name[:80], "a path that leaves the archive", HINT)
    return folder / parts


def _link(links: list[tuple[Path, str]], folder: Path) -> None:
    """Links last and none below another, so that nothing was written through one; those that lead out are no more."""
    made = []
    for place, target in links:
        place.parent.mkdir(parents=True, exist_ok=True)
        if place.parent.resolve() == place.parent and not place.exists() and not place.is_symlink():
            place.symlink_to(target)
            made.append(place)
    for place in made:
        if not _inside(place, folder):
            place.unlink()


def _inside(place: Path, folder: Path) -> bool:
    try:
        return place.resolve().is_relative_to(folder)
    except (OSError, RuntimeError):  # links in a circle
        return False


def _root(folder: Path) -> Path | None:
    """The folder that holds proc and sys: of its own, or one further down."""
    places = [folder, *sorted(folder.glob("*")), *sorted(folder.glob("*/*"))]
    return next((place for place in places if sysfs.is_tree(place)), None)
