"""What one Rust module defines, brings in and names: its items, its `use` lines and the paths in its code.

Tests are left out: whatever stands behind `#[cfg(test)]` is not read. Macros are not expanded: what one makes
belongs to the file that calls it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from rust_tokens import CLOSING, Token, group_end, tokens

Path = tuple[str, ...]

MODIFIERS = {"pub", "unsafe", "async", "default"}
BEFORE_A_FUNCTION = {"fn", "unsafe", "async", "extern"}
NAMED = {"fn", "struct", "enum", "union", "trait", "type", "const", "static", "macro_rules"}
ITEMS = NAMED | MODIFIERS | {"mod", "use", "impl", "extern"}


@dataclass(frozen=True)
class Use:
    """One name that a `use` brings in; the name of a glob is `*`."""

    path: Path
    name: str
    line: int
    public: bool


@dataclass
class Items:
    """One module as its text has it."""

    defined: dict[str, str] = field(default_factory=dict)
    """Items by name, with the keyword that made each."""
    children: dict[str, Items | None] = field(default_factory=dict)
    """Modules by name; `None` where a file holds it."""
    uses: list[Use] = field(default_factory=list)
    paths: list[tuple[Path, int]] = field(default_factory=list)
    """Paths and lone names in the code, each with its line."""
    functions: list[tuple[str, int]] = field(default_factory=list)
    """Functions with a body, and how many lines each takes."""


def read(source: str) -> Items:
    """The module that a file holds."""
    return Reader(tokens(source)).module()


class Reader:
    """Goes over the tokens of a module once, in order."""

    def __init__(self, stream: list[Token]) -> None:
        self.stream = stream
        self.at = 0
        self.items = Items()

    def module(self) -> Items:
        """Item after item; what stands between them (a call of a macro) counts as code."""
        while self.at < len(self.stream):
            self.item()
        return self.items

    def item(self) -> None:
        if self.attribute_of_a_test():
            self.at = end_of_item(self.stream, self.at)
            return
        public = self.modifiers()
        word = self.text()
        if word == "mod" and self.is_word(1):
            self.child()
        elif word == "use":
            self.use(public=public)
        elif word == "extern" and self.text(1) == "{":
            self.foreign()
        elif word in NAMED:
            self.named(word)
        else:
            self.code(end_of_item(self.stream, self.at))

    def text(self, ahead: int = 0) -> str:
        at = self.at + ahead
        return self.stream[at].text if at < len(self.stream) else ""

    def is_word(self, ahead: int) -> bool:
        at = self.at + ahead
        return at < len(self.stream) and self.stream[at].is_word

    def attribute_of_a_test(self) -> bool:
        """Goes past the attributes before an item; whether one of them says that it is a test's."""
        of_a_test = False
        while self.text() == "#":
            start = self.at + 1 + (self.text(1) == "!")
            end = group_end(self.stream, start)
            of_a_test |= says_test([token.text for token in self.stream[start:end]])
            self.at = end
        return of_a_test

    def modifiers(self) -> bool:
        """Goes past `pub(crate) unsafe async const` and the like; whether others see the item."""
        public = False
        while self.text() in MODIFIERS or (self.text() in {"const", "extern"} and self.text(1) in BEFORE_A_FUNCTION):
            public |= self.text() == "pub"
            self.at += 1
            if self.text() == "(" and public:
                self.at = group_end(self.stream, self.at)
        return public

    def child(self) -> None:
        name = self.text(1)
        self.at += 2
        if self.text() != "{":
            self.items.children[name] = None
            self.at += 1
            return
        end = group_end(self.stream, self.at)
        child = Reader(self.stream[self.at + 1 : end - 1]).module()
        self.items.children[name] = child
        self.at = end

    def use(self, *, public: bool) -> None:
        end = end_of(self.stream, self.at, ";")
        self.items.uses += used(self.stream[self.at + 1 : end - 1], public=public)
        self.at = end

    def foreign(self) -> None:
        """`extern "C" { … }`: its functions are items of the module."""
        end = group_end(self.stream, self.at + 1)
        inner = Reader(self.stream[self.at + 2 : end - 1]).module()
        self.items.defined |= inner.defined
        self.items.paths += inner.paths
        self.at = end

    def named(self, word: str) -> None:
        names = (token.text for token in self.stream[self.at + 1 :] if token.text not in {"mut", "!", "fn"})
        self.items.defined[next(names)] = word
        before = len(self.items.paths), len(self.items.uses)
        self.code(end_of_item(self.stream, self.at))
        if word == "macro_rules":
            self.forget_relative(*before)

    def forget_relative(self, paths: int, uses: int) -> None:
        """`super` and `self` in a macro mean the place that calls it."""
        items = self.items
        items.paths[paths:] = [p for p in items.paths[paths:] if p[0][0] not in {"self", "super"}]
        items.uses[uses:] = [use for use in items.uses[uses:] if use.path[0] not in {"self", "super"}]

    def code(self, end: int) -> None:
        """What an item says: paths, functions, and the `use` lines inside it."""
        body = without_tests(self.stream[self.at : max(end, self.at + 1)])
        self.items.functions += functions(body)
        index = 0
        while index < len(body):
            if body[index].text == "use" and index + 1 < len(body) and body[index + 1].text not in "<,":
                stop = end_of(body, index, ";")
                self.items.uses += used(body[index + 1 : stop - 1], public=False)
            elif body[index].is_word and body[index - 1].text != ".":
                path, stop = path_at(body, index)
                self.items.paths.append((path, body[index].line))
            else:
                stop = index + 1
            index = stop
        self.at = max(end, self.at + 1)


def says_test(attribute: list[str]) -> bool:
    """`#[cfg(test)]`, also among others; `not(test)` is none."""
    if attribute[1:2] != ["cfg"]:
        return False
    return any(word == "test" and attribute[i - 2 : i] != ["not", "("] for i, word in enumerate(attribute))


def without_tests(body: list[Token]) -> list[Token]:
    """The tokens of an item without its attributes, and without what is there for tests alone."""
    kept: list[Token] = []
    index = 0
    while index < len(body):
        if body[index].text == "#" and index + 1 < len(body) and body[index + 1].text in {"[", "!"}:
            reader = Reader(body[index:])
            of_a_test = reader.attribute_of_a_test()
            index += max(reader.at, 1)
            index = end_of_item(body, index) if of_a_test else index
        else:
            kept.append(body[index])
            index += 1
    return kept


def end_of(stream: list[Token], at: int, sign: str) -> int:
    """The index behind the next `sign` that stands in no bracket."""
    while at < len(stream) and stream[at].text != sign:
        at = group_end(stream, at) if stream[at].text in CLOSING else at + 1
    return at + 1


def end_of_item(stream: list[Token], at: int) -> int:
    """The index behind an item, or behind a field or statement: at its `;`, at its body, at its comma."""
    is_item = at < len(stream) and stream[at].text in ITEMS
    ends_with_a_body = at < len(stream) and not {"const", "static", "use"} & {t.text for t in leading(stream, at)}
    while at < len(stream):
        text = stream[at].text
        if text == ";" or (text == "," and not is_item):
            return at + 1
        if text in CLOSING:
            at = group_end(stream, at)
            if text == "{" and ends_with_a_body:
                return at
        elif text in CLOSING.values():
            return at
        else:
            at += 1
    return at


def leading(stream: list[Token], at: int) -> Iterator[Token]:
    """The keywords that an item begins with, where they say that it ends with `;` though it holds a block."""
    while at < len(stream) and (stream[at].text in MODIFIERS or stream[at].text == "("):
        at = group_end(stream, at) if stream[at].text == "(" else at + 1
    is_function = at + 1 < len(stream) and stream[at + 1].text in BEFORE_A_FUNCTION
    if at < len(stream) and not is_function:
        yield stream[at]


def path_at(body: list[Token], at: int) -> tuple[Path, int]:
    """The path that begins at a word, and where it ends."""
    path = [body[at].text]
    at += 1
    while at + 1 < len(body) and body[at].text == "::" and body[at + 1].is_word:
        path.append(body[at + 1].text)
        at += 2
    return tuple(path), at


def used(tree: list[Token], prefix: Path = (), *, public: bool) -> list[Use]:
    """The names that the tree of a `use` brings in: `a::{self, b as c, d::*}`."""
    words: list[str] = []
    name = ""
    found: list[Use] = []
    for index, (text, line) in enumerate(tree):
        path = (*prefix, *words)
        if text == "{":
            branches = split(tree[index + 1 : group_end(tree, index) - 1])
            return [use for branch in branches for use in used(branch, path, public=public)]
        if text == "*":
            return [Use(path, "*", line, public)]
        if text == "as":
            name = tree[index + 1].text
            break
        if text != "::":
            words.append(text)
    if words:
        path = (*prefix, *words)
        path = path[:-1] if path[-1] == "self" and len(path) > 1 else path
        found.append(Use(path, name or path[-1], tree[0].line, public))
    return found


def split(tree: list[Token]) -> list[list[Token]]:
    """The branches between the commas of a `use`."""
    branches = []
    at = 0
    while at < len(tree):
        end = end_of(tree, at, ",")
        branches.append(tree[at : end - 1])
        at = end
    return branches


def functions(body: list[Token]) -> list[tuple[str, int]]:
    """Functions with a body, and their lines from `fn` to the closing brace."""
    found = []
    for index, (word, name) in enumerate(pairwise(body)):
        if word.text != "fn" or not name.is_word:
            continue
        at = index + 2
        while at < len(body) and body[at].text not in {"{", ";"}:
            at = group_end(body, at) if body[at].text in CLOSING else at + 1
        if at < len(body) and body[at].text == "{":
            end = group_end(body, at)
            found.append((name.text, body[end - 1].line - word.line + 1))
    return found
