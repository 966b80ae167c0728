"""Installs what is missing of Debian's packages, by group, and says what; never fails for a missing one.

Usage: python3 tools/install_packages.py GROUP…

It runs before anything is built, so it takes the standard library alone. Who is no root, or has no apt,
is told what is missing; the tests that need it are skipped and say so too.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parent.parent / "python" / "tierloom"))

from debian import packages, sources

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from debian.packages import Package

APT = ("apt-get", "-qq", "-o", "Dpkg::Use-Pty=0")
POLICY = Path("/usr/sbin/policy-rc.d")
"""What Debian asks before it starts a service."""


def main(groups: list[str]) -> None:
    """Installs the groups' packages as far as it can."""
    missing = [each for each in packages.listed() if each.group in groups and not each.is_here]
    if not missing:
        return
    names = " ".join(each.name for each in missing)
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        tell(f"not installed: {names}", f"as root: apt-get install {names}; what needs them is skipped")
        return
    subprocess.run([*APT, "update"], check=False)
    install(missing)
    came = [each.name for each in missing if each.is_here]
    left = [each.name for each in missing if not each.is_here]
    if came:
        tell(f"installed: {' '.join(came)}")
    if left:
        tell(f"could not be installed: {' '.join(left)}", "what needs them is skipped")


def install(missing: Iterable[Package]) -> None:
    """All in one go from the release, the rest from its backports; what it does not know is left out."""
    chosen = {package.name: candidate(package.name) for package in missing}
    good = [each.name for each in missing if chosen[each.name] and packages.is_recent(chosen[each.name], each.at_least)]
    late = [each.name for each in missing if each.at_least and each.name not in good]
    with no_services():
        apt_install(good)
        if late and (target := backports()):
            apt_install(late, "--target-release", target)


def apt_install(names: list[str], *options: str) -> None:
    """Installs packages; apt says on stderr what it cannot."""
    if names:
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        words = [*APT, "install", "--yes", "--no-install-recommends", *options, *names]
        subprocess.run(words, env=environment, stdout=subprocess.DEVNULL, check=False)


def backports() -> str:
    """Tells apt of the backports of this release, from the mirror that the release comes from; their suite."""
    source, name = sources.debian(), sources.codename()
    if source is None or not name:
        return ""
    suite = f"{name}-backports"
    if suite not in {each.suite for each in sources.listed()}:
        Path(f"/etc/apt/sources.list.d/{suite}.sources").write_text(source.of(suite).text, encoding="utf-8")
        subprocess.run([*APT, "update"], check=False)
    return suite


@contextmanager
def no_services() -> Iterator[None]:
    """Servers are installed to be profiled, not to run: Debian is asked not to start them meanwhile."""
    if POLICY.exists():
        yield
        return
    POLICY.write_text("#!/bin/sh\nexit 101\n", encoding="ascii")
    POLICY.chmod(0o755)
    try:
        yield
    finally:
        POLICY.unlink()


def candidate(name: str) -> str:
    """The version that apt would install; empty where it knows none."""
    told = [line.split() for line in packages.output("apt-cache", "policy", name).splitlines()]
    return next((words[1] for words in told if words[:1] == ["Candidate:"] and words[1] != "(none)"), "")


def tell(what: str, hint: str = "") -> None:
    """Words on stderr."""
    sys.stderr.write(f"packages {what}\n" + (f"hint: {hint}\n" if hint else ""))


if __name__ == "__main__":
    main(sys.argv[1:])
