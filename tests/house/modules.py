"""Which file of a crate uses which other, and the circles in that.

A name is followed to the file that defines it, through `use`, renames, globs and re-exports; a re-export is no use.
A child may take traits from the file of its folder (the interface stands there, beside the list of what implements
it), and that is no use either. `python tests/house/modules.py crates/wire` prints the circles of a crate and why
they are there; with `--all`, every use.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import rust_items
from rust_items import Items, Use

Name = tuple[str, ...]
Uses = dict[tuple[str, str], dict[str, int]]
"""From file to file: the names used, each with a line that uses it."""

ROOTS = ("lib.rs", "main.rs")
VALUES = {"fn", "const", "static", "macro_rules"}
"""Items that no path goes through: a module may have the name of one."""
FAR = 20
"""Re-exports followed before a name counts as not found."""


@dataclass
class Module:
    """A module, where its text stands, and the module around it."""

    file: str
    items: Items
    parent: Module | None
    children: dict[str, Module] = field(default_factory=dict)


@dataclass(frozen=True)
class Place:
    """Where a name leads: a module itself, or an item in it (`None`: one that a macro makes)."""

    module: Module
    item: str | None
    kind: str | None


class Crate:
    """The modules of one crate."""

    def __init__(self, folder: Path) -> None:
        self.source = folder / "src"
        self.modules: list[Module] = []
        for root in ROOTS:
            if (self.source / root).exists():
                self.root = self.file(self.source / root, self.source, None)

    def file(self, path: Path, folder: Path, parent: Module | None) -> Module:
        """A file, and the files of its children below `folder`."""
        items = rust_items.read(path.read_text(encoding="utf-8"))
        return self.module(str(path.relative_to(self.source)), items, folder, parent)

    def module(self, file: str, items: Items, folder: Path, parent: Module | None) -> Module:
        module = Module(file, items, parent)
        self.modules.append(module)
        for name, child in items.children.items():
            if child is not None:
                module.children[name] = self.module(file, child, folder / name, module)
                continue
            flat, nested = folder / f"{name}.rs", folder / name / "mod.rs"
            module.children[name] = self.file(flat if flat.exists() else nested, folder / name, module)
        return module

    @cached_property
    def files(self) -> list[str]:
        return sorted({module.file for module in self.modules})

    @cached_property
    def uses(self) -> Uses:
        """Every use of one file by another, but those that the house allows both ways."""
        found: Uses = defaultdict(dict)
        for module in self.modules:
            for place, line in self.leads(module):
                if place.module.file != module.file and not is_interface(module, place):
                    found[module.file, place.module.file].setdefault(place.item or "?", line)
        return found

    def outward(self) -> Iterator[tuple[Name, str]]:
        """Paths of two and more names as they are written, each with the file that has it."""
        for module in self.modules:
            written = [(use.path, use.line) for use in module.items.uses]
            for path, line in [*written, *module.items.paths]:
                if len(path) > 1:
                    yield path, f"{module.file}:{line}"

    def lengths(self) -> list[int]:
        """Lines of each function."""
        return [lines for module in self.modules for _, lines in module.items.functions]

    def leads(self, module: Module) -> Iterator[tuple[Place, int]]:
        """Where each name of a module leads that is more than handed on."""
        for use in module.items.uses:
            if not use.public and use.name != "*":
                yield from ((place, use.line) for place in self.resolve(module, use.path) if place.kind != "mod")
        for path, line in module.items.paths:
            if len(path) == 1 and path[0] not in self.brought(module):
                continue
            yield from ((place, line) for place in self.resolve(module, path) if place.kind != "mod")

    def brought(self, module: Module) -> set[str]:
        """Lone names that may come from another file: re-exported ones, and all where there is a glob."""
        uses = module.items.uses
        names = {use.name for use in uses if use.public}
        for use in uses:
            if use.name == "*":
                names |= {name for place in self.resolve(module, use.path) for name in offered(place.module)}
        return names - set(module.items.defined)

    def resolve(self, module: Module, path: Name, far: int = FAR) -> list[Place]:
        """What a path may mean, seen from a module; nothing where it leads out of the crate."""
        first, *rest = path
        if first == "crate":
            return self.within(self.root, rest, far)
        if first == "self":
            return self.within(module, rest, far)
        if first == "super":
            return self.within(module.parent, rest, far) if module.parent else []
        return [place for start in self.named(module, first, far) for place in self.further(start, rest, far)]

    def within(self, module: Module, path: list[str], far: int) -> list[Place]:
        """What a path means inside a module that is known to be ours."""
        if not path:
            return [Place(module, None, "mod")]
        if path[0] in {"self", "super"}:
            return self.resolve(module, tuple(path), far)
        if far == 0:
            return []
        starts = self.named(module, path[0], far) or self.made(module, path[0])
        return [place for start in starts for place in self.further(start, path[1:], far)]

    def further(self, start: Place, rest: list[str], far: int) -> list[Place]:
        """The rest of a path, behind its first name: what follows an item is part of the item."""
        if start.kind == "mod":
            return self.within(start.module, rest, far)
        return [] if rest and start.kind in VALUES else [start]

    def named(self, module: Module, name: str, far: int) -> list[Place]:
        """What a name means in a module: its own items and children, then what it brings in."""
        if far == 0:
            return []
        found = []
        if name in module.items.defined:
            found.append(Place(module, name, module.items.defined[name]))
        if name in module.children:
            found.append(Place(module.children[name], None, "mod"))
        for use in module.items.uses:
            if use.name == name:
                found += self.brought_in(module, use, far - 1)
        if found:
            return found
        return [
            place
            for use in module.items.uses
            if use.name == "*" and (use.path[-1], name) != (name, name)
            for start in self.resolve(module, use.path, far - 1)
            if start.kind == "mod" and start.module is not module
            for place in self.named(start.module, name, far - 1)
        ]

    def brought_in(self, module: Module, use: Use, far: int) -> list[Place]:
        """What a `use` of one name brings in. `use log::log` means the crate, or a child, and not itself."""
        if use.path[0] == use.name and len(use.path) > 1 and use.name not in module.children:
            return []
        if use.path == (use.name,):
            return []
        return self.resolve(module, use.path, far)

    def made(self, module: Module, name: str) -> list[Place]:
        """A name that nobody defines in so many words: a macro makes it, unless it comes from outside."""
        outside = any(use.name == name for use in module.items.uses)
        return [] if outside else [Place(module, name, None)]


def is_interface(module: Module, place: Place) -> bool:
    """A child that takes a trait from the file of its folder."""
    return place.kind == "trait" and module.parent is place.module


def offered(module: Module) -> set[str]:
    """The names that a glob of a module brings in."""
    return set(module.items.defined) | set(module.children) | {use.name for use in module.items.uses}


def circles(uses: Uses) -> list[frozenset[str]]:
    """Files that lead to one another: the strongly connected components with more than one file."""
    onward: dict[str, set[str]] = defaultdict(set)
    for source, target in uses:
        onward[source].add(target)
    reached = {file: reach(onward, file) for file in list(onward)}
    found = {frozenset(b for b in reached[a] if a in reached.get(b, ())) for a in reached if a in reached[a]}
    return sorted(found, key=sorted)


def reach(onward: dict[str, set[str]], start: str) -> set[str]:
    """Every file that one leads to, itself among them where there is a way back."""
    seen: set[str] = set()
    waiting = [start]
    while waiting:
        for target in onward[waiting.pop()] - seen:
            seen.add(target)
            waiting.append(target)
    return seen


def told(uses: Uses) -> list[str]:
    """One line for each use of a file by another: where, and of what."""
    lines = []
    for (source, target), names in sorted(uses.items()):
        what = ", ".join(sorted(names))
        lines.append(f"  {source}:{min(names.values())} uses {what} of {target}")
    return lines


def inside(uses: Uses, circle: frozenset[str]) -> Uses:
    """The uses that make a circle."""
    return {pair: names for pair, names in uses.items() if set(pair) <= circle}


def report(folder: Path, *, every: bool) -> Iterator[str]:
    crate = Crate(folder)
    found = circles(crate.uses)
    yield f"{folder}: {len(crate.files)} files, {len(crate.uses)} uses between them, {len(found)} circles"
    for circle in found:
        yield f"circle of {len(circle)}: {' '.join(sorted(circle))}"
        yield from told(inside(crate.uses, circle))
    if every:
        yield from told(crate.uses)


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        if argument != "--all":
            print(*report(Path(argument), every="--all" in sys.argv), sep="\n")  # noqa: T201 - it is what it is for
