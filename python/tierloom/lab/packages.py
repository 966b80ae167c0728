"""Distribution packages for the guest: resolved and downloaded by apt, without root.

First step of an image. apt works on folders of its own in the cache (sources, lists, an empty dpkg
status), so it neither needs root nor looks at what this host has installed; it checks signatures
and checksums as always. Promises that the same :class:`Packages` always means the same bytes:
``digest`` is over the contents of every file.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import tarfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from tierloom.debian import packages as debian
from tierloom.debian import sources
from tierloom.debian.sources import Source
from tierloom.errors import LabError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SUITE = "trixie"
"""Debian 13: its 6.12 kernel has weighted interleave (6.9), HMAT memory tiers (6.7) and CXL regions."""

MIRROR_VARIABLE = "TIERLOOM_LAB_MIRROR"
"""Names a mirror where this machine's own sources do not: on other distributions, or without a network."""

KEYRING = Path(sources.KEYRING)

KERNEL = "linux-image-amd64"
"""Depends on the newest kernel of the suite. The cloud kernel has no 9p, so it cannot share folders."""

TOOLS = ("busybox-static", "cxl", "daxctl", "e2fsprogs", "ndctl", "numactl")
"""What runs in the guest beside the host's own programs; apt adds the libraries they need."""

APT_TOOLS = ("apt-get", "apt-cache", "dpkg-deb")

_APT_CONF = """\
Dir "{root}";
Dir::Etc "{root}/etc";
Dir::Etc::sourcelist "/dev/null";
Dir::Etc::sourceparts "{root}/etc/sources.list.d";
Dir::State "{root}/state";
Dir::State::status "{root}/state/status";
Dir::Cache "{root}/cache";
Dir::Cache::archives "{root}/archives";
APT::Architecture "amd64";
APT::Architectures {{ "amd64"; }};
APT::Install-Recommends "false";
APT::Sandbox::User "";
Acquire::Languages "none";
"""


@dataclass(frozen=True)
class Packages:
    """Package files on this host.

    Args:
        kernel: The package with the kernel and its modules.
        tools: Packages of the guest's own programs and their libraries, sorted by name.
        digest: SHA-256 over names and contents, in hexadecimal.
    """

    kernel: Path
    tools: tuple[Path, ...]
    digest: str

    def versions(self) -> dict[str, str]:
        """Version by package name, read off the file names."""
        parts = [path.name.split("_") for path in (self.kernel, *self.tools)]
        return {name: version.replace("%3a", ":") for name, version, *_ in parts}


def fetch(cache: Path, *, update: bool = False) -> Packages:
    """The packages of an image: those fetched before, or the newest of the suite.

    Args:
        cache: Folder for apt's files and the packages.
        update: Ask the archive for newer ones even when some are there.

    Raises:
        LabError: apt is missing, or the archive cannot be reached.
    """
    record = cache / "packages.json"
    if not update and (found := _recorded(record, cache / "archives")):
        return found
    apt_is_there()
    environment = _apt_folders(cache)
    _apt(environment, "apt-get", "update")
    kernel = _kernel_name(_apt(environment, "apt-cache", "show", KERNEL))
    names = [*_resolved(_apt(environment, "apt-get", "install", "--print-uris", "--yes", *TOOLS)), kernel]
    _apt(environment, "apt-get", "download", *names, cwd=cache / "archives")
    files = {name: _newest(cache / "archives", name) for name in names}
    packages = _checked(files.pop(kernel), sorted(files.values()))
    for left in set((cache / "archives").glob("*.deb")) - {packages.kernel, *packages.tools}:
        left.unlink()
    record.write_text(json.dumps({"request": _request(), "kernel": kernel, **_names_of(packages)}, indent=2))
    return packages


@contextmanager
def contents(package: Path) -> Iterator[tarfile.TarFile]:
    """The files of a package, as a stream that is read once, in order."""
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", package], stdout=subprocess.PIPE) as unpacking:  # noqa: S607
        with tarfile.open(fileobj=unpacking.stdout, mode="r|") as files:
            yield files
        # dpkg-deb still writes the padding behind the last file.
        cast("object", unpacking.stdout and unpacking.stdout.read())


def apt_is_there() -> None:
    """Sees whether packages can be fetched and checked.

    Raises:
        LabError: A tool or Debian's keys are missing.
    """
    missing = [tool for tool in APT_TOOLS if shutil.which(tool) is None]
    if missing:
        message = (
            f"building the guest takes apt, and there is no {', '.join(missing)} here\n"
            "hint: install apt and dpkg (they are packages of most distributions, not only of Debian's family)"
        )
        raise LabError(message)
    if not KEYRING.exists():
        hint = debian.named("debian-archive-keyring").hint
        message = f"{KEYRING} is missing, so packages cannot be checked\nhint: {hint}"
        raise LabError(message)


def source() -> Source:
    """The guest's release: of the mirror that this machine's Debian comes from, or of one that a variable names.

    Raises:
        LabError: There is neither.
    """
    if mirror := os.environ.get(MIRROR_VARIABLE):
        return Source(mirror, SUITE)
    own = sources.debian()
    if own is None:
        message = (
            "apt's sources name no mirror of Debian, which the guest is made of\n"
            f"hint: set {MIRROR_VARIABLE} to the address of one"
        )
        raise LabError(message)
    return own.of(SUITE)


def _apt_folders(cache: Path) -> Mapping[str, str]:
    for name in (
        "etc/apt.conf.d",
        "etc/preferences.d",
        "etc/sources.list.d",
        "state/lists/partial",
        "cache",
        "archives/partial",
    ):
        (cache / name).mkdir(parents=True, exist_ok=True)
    (cache / "etc" / "sources.list.d" / "guest.sources").write_text(source().text)
    (cache / "state" / "status").write_text("")
    configuration = cache / "etc" / "apt.conf"
    configuration.write_text(_APT_CONF.format(root=cache))
    return {**os.environ, "APT_CONFIG": str(configuration), "LC_ALL": "C"}


def _apt(environment: Mapping[str, str], *command: str, cwd: Path | None = None) -> str:
    done = subprocess.run(command, env=environment, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        told = [line for line in done.stderr.splitlines() if line.startswith("E:")] or ["E: no reason given"]
        message = (
            f"`{' '.join(command[:2])}` failed: {told[0][2:].strip()}\n"
            f"hint: the packages come from {source().uri}; set {MIRROR_VARIABLE} to a mirror that can be reached"
        )
        raise LabError(message)
    return done.stdout


def _kernel_name(shown: str) -> str:
    """The kernel package that the meta-package depends on, in the output of ``apt-cache show``."""
    found = re.search(r"^Depends: (linux-image-[^\s,]+)", shown, re.MULTILINE)
    if found is None:
        message = f"{KERNEL} of {SUITE} names no kernel\nhint: {MIRROR_VARIABLE} may point to a mirror without it"
        raise LabError(message)
    return found[1]


def _resolved(uris: str) -> list[str]:
    """Package names in the output of ``apt-get --print-uris``: ``'URI' NAME_VERSION_ARCH.deb SIZE HASH``."""
    return re.findall(r"^'[^']+' ([^_\s]+)_", uris, re.MULTILINE)


def _newest(archives: Path, name: str) -> Path:
    return max(archives.glob(f"{name}_*.deb"), key=lambda path: path.stat().st_mtime_ns)


def _checked(kernel: Path, tools: list[Path]) -> Packages:
    digest = hashlib.sha256()
    for path in (kernel, *tools):
        digest.update(path.name.encode() + b"\0")
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return Packages(kernel, tuple(tools), digest.hexdigest())


def _request() -> dict[str, object]:
    return {"suite": SUITE, "kernel": KERNEL, "tools": list(TOOLS)}


def _names_of(packages: Packages) -> dict[str, object]:
    names = [path.name for path in packages.tools]
    return {"kernel_file": packages.kernel.name, "tool_files": names, "digest": packages.digest}


def _recorded(record: Path, archives: Path) -> Packages | None:
    """What an earlier fetch left, when it was asked for the same and all of it is still there."""
    if not record.exists():
        return None
    found = json.loads(record.read_text())
    files = [archives / name for name in (found["kernel_file"], *found["tool_files"])]
    if found["request"] != _request() or not all(path.exists() for path in files):
        return None
    return Packages(files[0], tuple(files[1:]), found["digest"])
