"""hwloc's XML as elements and their words: objects, sets of CPUs, numbers, infos, each error with its place."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from tierloom.machine_formats.texts import flaw, text_of

if TYPE_CHECKING:
    from pathlib import Path

MOST_CPUS = 1 << 16
AGAIN = "export the topology again"


@dataclass(frozen=True)
class Object:
    """One object of the tree."""

    element: ET.Element
    kind: str
    cpus: int
    """CPUs that can be used, as bits."""
    all_cpus: int
    """With those that are offline or not allowed."""


@dataclass(frozen=True)
class Document:
    """A topology's XML, its objects in the order of the file."""

    path: Path
    root: ET.Element
    objects: list[Object]

    def of_kind(self, kind: str) -> list[Object]:
        """The objects of a type."""
        return [found for found in self.objects if found.kind == kind]

    def parents(self) -> dict[ET.Element, ET.Element]:
        """The object around each object."""
        return {child: parent for parent in self.root.iter("object") for child in parent.findall("object")}


def document(path: Path) -> Document:
    """Reads the file.

    Raises:
        MachineError: It is no topology that hwloc 2 or later exported.
    """
    root = _root(path)
    objects = [_object(element, path) for element in root.iter("object")]
    return Document(path, root, objects)


def _object(element: ET.Element, path: Path) -> Object:
    cpus = bits(element, "cpuset", path)
    return Object(element, element.get("type", ""), cpus, bits(element, "complete_cpuset", path) | cpus)


def _root(path: Path) -> ET.Element:
    text = text_of(path)
    if "<!ENTITY" in text:
        raise flaw(path, "", "it defines entities, which hwloc never does", AGAIN)
    try:
        root = ET.fromstring(text)  # noqa: S314 (no entities, no external parts: see above)
    except ET.ParseError as problem:
        line, column = problem.position
        where = f"line {line}, column {column}"
        raise flaw(path, where, "this is not XML", "export it again: lstopo topology.xml") from problem
    version = root.get("version", "1")
    if root.tag != "topology":
        raise flaw(path, root.tag, "this is not an hwloc topology", "give a file that lstopo exported")
    if not re.fullmatch(r"[2-9]\d*\.\d+", version):
        hint = "convert it: lstopo -i old.xml new.xml (hwloc 2)"
        raise flaw(path, "topology version", f"`{version[:20]}` is not version 2 or later", hint)
    return root


def bits(element: ET.Element, key: str, path: Path) -> int:
    """A set such as ``0x00000001,0x0000ffff``: 32 bits a word, the highest first, empty words zero.

    Raises:
        MachineError: It is none, or is longer than any machine's.
    """
    text = element.get(key, "0x0")
    if len(text) > MOST_CPUS // 2:
        raise flaw(path, where(element), f"the {key} is longer than any machine's", AGAIN)
    words = [word.removeprefix("0x") for word in text.split(",")]
    if not all(re.fullmatch(r"[0-9a-fA-F]{0,8}", word) for word in words):
        raise flaw(path, where(element), f"{key} `{text[:40]}` is not a list of 32-bit words", AGAIN)
    return int("".join(word.rjust(8, "0") for word in words), 16)


def where(element: ET.Element) -> str:
    """How errors call an element."""
    key = "os_index" if element.get("os_index") else "gp_index"
    return f"{element.get('type', element.tag)} {key}={element.get(key, '?')}"


def whole(element: ET.Element, key: str, path: Path, *, least: int = 0) -> int:
    """A whole number.

    Raises:
        MachineError: It is none, or below `least`.
    """
    text = element.get(key, "")
    if not re.fullmatch(r"\d{1,19}", text) or int(text) < least:
        problem = f"{key} `{text[:40]}` is not a whole number of at least {least}"
        raise flaw(path, where(element), problem, AGAIN)
    return int(text)


def infos(element: ET.Element) -> dict[str, str]:
    """What hwloc or others have noted of an object."""
    return {info.get("name", ""): info.get("value", "") for info in element.findall("info")}
