"""The guest's kernel and initial memory file system, made of packages and cached by content.

Second step, after ``packages``: the kernel file as it is, and a cpio archive (format "newc", the
kernel's Documentation/driver-api/early-userspace/buffer-format.rst) of the tools, their libraries
and the few kernel modules the guest loads. Everything lives in memory: there is no disk, hence no
disk image to make, and no root needed. The same packages give the same bytes.
"""

from __future__ import annotations

import fcntl
import hashlib
import io
import json
import lzma
import os
import re
import shutil
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tierloom.errors import LabError
from tierloom.lab import packages

if TYPE_CHECKING:
    import tarfile
    from collections.abc import Mapping

MODULES: Mapping[str, tuple[str, ...]] = {
    "share": ("9pnet_virtio", "9p", "overlay"),
    "cxl": ("cxl_acpi", "cxl_pci", "cxl_mem", "device_dax", "dax_cxl", "kmem"),
    "pmem": (
        "libnvdimm",
        "cxl_acpi",
        "cxl_pci",
        "cxl_mem",
        "cxl_pmem",
        "nd_pmem",
        "dax_pmem",
        "device_dax",
        "crc32c_generic",
        "ext4",
    ),
}
"""Modules to load, by what they are for; those they depend on are found in the modules themselves."""

LINKS = {"bin": "usr/bin", "sbin": "usr/sbin", "lib": "usr/lib", "lib64": "usr/lib64"}
"""What Debian's base-files package would bring."""

FOLDERS = ("dev", "proc", "sys", "run", "tmp", "mnt", "host", "lab", "overlay", "etc")
KEPT = re.compile(r"usr/(bin|sbin|lib|lib64)/")
DROPPED = re.compile(r"usr/lib/(systemd|tmpfiles\.d|modules-load\.d|lintian|girepository)|usr/lib/.*/(perl|gconv)/")
MODULE = re.compile(r"usr/lib/modules/[^/]+/kernel/.*/([^/]+)\.ko(\.xz)?$")
FOLDER = (stat.S_IFDIR | 0o755, b"")
FORMAT = 1
"""Raised when this file makes another image of the same packages."""


@dataclass(frozen=True)
class Image:
    """A kernel and what it starts with.

    Args:
        folder: Where its files are; the name is its content hash.
        versions: Version by package name.
    """

    folder: Path
    versions: Mapping[str, str]

    @property
    def kernel(self) -> Path:
        """The kernel, as the boot loader would get it."""
        return self.folder / "vmlinuz"

    @property
    def initrd(self) -> Path:
        """Uncompressed cpio archive; more archives may follow it in one file."""
        return self.folder / "initrd.cpio"

    @property
    def kernel_version(self) -> str:
        """Version of the kernel's package."""
        return next(v for name, v in self.versions.items() if name.startswith("linux-image-"))


def build(cache: Path, *, update: bool = False) -> Image:
    """The image of the packages in the cache, made in place of older ones when it is not there yet.

    Args:
        cache: The lab's cache folder.
        update: Take newer packages when the archive has some.

    Raises:
        LabError: Packages cannot be had, or lack what the guest needs.
    """
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        chosen = packages.fetch(cache / "packages", update=update)
        folder = cache / "images" / identity(chosen.digest)
        if not (folder / "image.json").exists():
            shutil.rmtree(folder.parent, ignore_errors=True)
            _write(folder, chosen)
    return Image(folder, json.loads((folder / "image.json").read_text())["versions"])


def identity(digest: str) -> str:
    """Content hash of an image: of its packages, of what is taken from them, and of this file's format."""
    recipe = json.dumps([FORMAT, digest, MODULES, LINKS, FOLDERS, KEPT.pattern, DROPPED.pattern])
    return hashlib.sha256(recipe.encode()).hexdigest()[:16]


def archive(files: Mapping[str, tuple[int, bytes]]) -> bytes:
    """A cpio archive of files by path: mode and contents (a symbolic link's contents are its target).

    Inode numbers count up, times are 0, everything is root's, so the bytes depend on nothing else.
    """
    out = io.BytesIO()
    entries = [*sorted(files.items()), ("TRAILER!!!", (0, b""))]
    for number, (path, (mode, data)) in enumerate(entries, start=1):
        name = path.encode() + b"\0"
        links = 2 if stat.S_ISDIR(mode) else 1
        fields = (number, mode, 0, 0, links, 0, len(data), 0, 0, 0, 0, len(name), 0)
        out.write(b"070701" + b"".join(b"%08X" % field for field in fields) + name)
        _pad(out)
        out.write(data)
        _pad(out)
    return out.getvalue()


def _pad(out: io.BytesIO) -> None:
    out.write(b"\0" * (-out.tell() % 4))


def _write(folder: Path, chosen: packages.Packages) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    kernel, modules = _from_kernel(chosen.kernel)
    files: dict[str, tuple[int, bytes]] = dict.fromkeys(FOLDERS, FOLDER)
    files |= {name: (stat.S_IFLNK | 0o777, target.encode()) for name, target in LINKS.items()}
    for package in chosen.tools:
        files |= _from_package(package)
    files |= _module_files(modules)
    (folder / "vmlinuz").write_bytes(kernel)
    (folder / "initrd.cpio").write_bytes(archive(_with_parents(files)))
    record = folder / "image.json.new"
    record.write_text(json.dumps({"versions": chosen.versions(), "packages": chosen.digest}, indent=2))
    record.replace(folder / "image.json")


def _from_kernel(package: Path) -> tuple[bytes, dict[str, bytes]]:
    """The kernel and its modules, still compressed, by name."""
    kernel, modules = b"", {}
    with packages.contents(package) as files:
        for member in files:
            name = member.name.removeprefix("./")
            if name.startswith("boot/vmlinuz-"):
                kernel = _data(files, member)
            elif found := MODULE.match(name):
                modules[found[1].replace("-", "_")] = _data(files, member)
    if not kernel:
        message = f"{package.name} holds no kernel\nhint: `tierloom lab image --update` fetches the packages again"
        raise LabError(message)
    return kernel, modules


def _module_files(modules: Mapping[str, bytes]) -> dict[str, tuple[int, bytes]]:
    """``/modules/PURPOSE`` lists the modules of a purpose in loading order; the modules lie beside."""
    files: dict[str, tuple[int, bytes]] = {}
    for purpose, wanted in MODULES.items():
        order: dict[str, bytes] = {}
        for name in wanted:
            _load_order(name, modules, order)
        files[f"modules/{purpose}"] = (stat.S_IFREG | 0o644, "".join(f"{n}.ko\n" for n in order).encode())
        files |= {f"modules/{name}.ko": (stat.S_IFREG | 0o644, data) for name, data in order.items()}
    return files


def _load_order(name: str, modules: Mapping[str, bytes], order: dict[str, bytes]) -> None:
    """Adds a module behind those it depends on; one that is built into the kernel is none."""
    if name in order or name not in modules:
        return
    data = _decompressed(modules[name])
    for needed in _depends(data):
        _load_order(needed, modules, order)
    order[name] = data


def _depends(module: bytes) -> list[str]:
    """The ``depends=`` entry of a module's ``.modinfo`` section."""
    found = re.search(rb"\0depends=([^\0]*)\0", module)
    return [name.replace("-", "_") for name in found[1].decode().split(",") if name] if found else []


def _decompressed(module: bytes) -> bytes:
    return lzma.decompress(module) if module.startswith(b"\xfd7zXZ") else module


def _from_package(package: Path) -> dict[str, tuple[int, bytes]]:
    files: dict[str, tuple[int, bytes]] = {}
    with packages.contents(package) as members:
        for member in members:
            name = os.path.normpath(member.name)
            name = re.sub(r"^(bin|sbin|lib|lib64)/", r"usr/\1/", name)
            if member.isdir() or not KEPT.match(name) or DROPPED.match(name):
                continue
            files[name] = _entry(members, member)
    return files


def _entry(members: tarfile.TarFile, member: tarfile.TarInfo) -> tuple[int, bytes]:
    if member.issym():
        return stat.S_IFLNK | 0o777, member.linkname.encode()
    if member.islnk():
        # Rare (e2fsprogs: mke2fs and mkfs.ext4): the packages only link within one folder.
        return stat.S_IFLNK | 0o777, Path(member.linkname).name.encode()
    return stat.S_IFREG | (member.mode & 0o777), _data(members, member)


def _data(members: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = members.extractfile(member)
    return file.read() if file else b""


def _with_parents(files: Mapping[str, tuple[int, bytes]]) -> dict[str, tuple[int, bytes]]:
    parents = {str(parent) for path in files for parent in Path(path).parents} - {"."}
    return {**dict.fromkeys(parents, FOLDER), **files}
