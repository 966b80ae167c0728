"""Where this machine gets its Debian packages: apt's own files, in both of their forms.

Whoever set the machine up has chosen a mirror that it can reach; other suites (backports, the release of the
lab's guest) come from the same one, checked by the same keys.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
"""What checks Debian's packages where a source does not say."""

_LINE = re.compile(r"deb\s+(?:\[(?P<options>[^]]*)\]\s+)?(?P<uri>\S+)\s+(?P<suite>\S+)\s+(?P<components>\S.*)")


@dataclass(frozen=True)
class Source:
    """One suite of a mirror.

    Attributes:
        uri: The mirror.
        suite: A release, or a part of one such as its updates.
        components: ``main`` and others.
        signed_by: A path of keys, or the keys themselves as a file of apt holds them.
    """

    uri: str
    suite: str
    components: tuple[str, ...] = ("main",)
    signed_by: str = KEYRING

    def of(self, suite: str) -> Source:
        """The same mirror's other suite."""
        return replace(self, suite=suite, components=("main",))

    @property
    def text(self) -> str:
        """As a ``.sources`` file of apt holds it."""
        return (
            f"Types: deb\nURIs: {self.uri}\nSuites: {self.suite}\nComponents: {' '.join(self.components)}\n"
            f"Signed-By: {self.signed_by}\n"
        )


def debian(root: Path = Path("/")) -> Source | None:
    """This machine's source of Debian's own release; none where it is no Debian, or says nowhere.

    Args:
        root: Folder with ``etc``.
    """
    release = _release(root / "etc/os-release")
    suites = {release.get("VERSION_CODENAME", ""), "stable", "testing", "unstable", "sid"} - {""}
    if release.get("ID") != "debian":
        return None
    return next((each for each in listed(root) if each.suite in suites and "main" in each.components), None)


def codename(root: Path = Path("/")) -> str:
    """Name of this machine's release; empty where it does not say."""
    return _release(root / "etc/os-release").get("VERSION_CODENAME", "")


def listed(root: Path = Path("/")) -> Iterator[Source]:
    """Every suite that apt is told of."""
    folder = root / "etc/apt"
    for path in [folder / "sources.list", *sorted((folder / "sources.list.d").glob("*"))]:
        if path.suffix == ".sources":
            yield from _paragraphs(path.read_text(encoding="utf-8"))
        elif path.suffix == ".list" and path.is_file():
            yield from _lines(path.read_text(encoding="utf-8"))


def _lines(text: str) -> Iterator[Source]:
    """The older form: a line a suite, with options in brackets."""
    for line in text.splitlines():
        if found := _LINE.match(line.partition("#")[0].strip()):
            options = dict(word.split("=", 1) for word in (found["options"] or "").split() if "=" in word)
            components = tuple(found["components"].split())
            yield Source(found["uri"], found["suite"], components, options.get("signed-by", KEYRING))


def _paragraphs(text: str) -> Iterator[Source]:
    """The newer form: paragraphs of fields; a value goes on in lines that begin with a space."""
    for paragraph in re.split(r"\n\s*\n", re.sub(r"^#.*\n?", "", text, flags=re.MULTILINE)):
        fields = {
            name.lower(): value.strip()
            for name, value in re.findall(r"^([\w-]+):(.*(?:\n[ \t].*)*)", paragraph, re.MULTILINE)
        }
        if "deb" not in fields.get("types", "").split() or fields.get("enabled", "yes") == "no":
            continue
        keys = fields.get("signed-by", KEYRING)
        components = tuple(fields.get("components", "").split())
        for uri in fields.get("uris", "").split():
            for suite in fields.get("suites", "").split():
                yield Source(uri, suite, components, f"\n {keys}" if "\n" in keys else keys)


def _release(path: Path) -> dict[str, str]:
    """What the machine says it is."""
    if not path.is_file():
        return {}
    pairs = (line.split("=", 1) for line in path.read_text(encoding="utf-8").splitlines() if "=" in line)
    return {name: value.strip("\"'") for name, value in pairs}
