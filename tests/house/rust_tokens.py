"""Rust source as a list of tokens: words, `::` and single signs, without comments and the insides of strings."""

from __future__ import annotations

import re
from typing import NamedTuple

SIGNS = re.compile(
    r"""(?P<space>\s+|//[^\n]*)
      | (?P<comment>/\*)
      | (?P<raw>[bc]?r(?P<fence>\#*)".*?"(?P=fence))
      | (?P<string>[bc]?"(?:\\.|[^"\\])*")
      | (?P<char>b?'(?:\\(?:u\{[^}]*\}|x..|.)|[^\\'\n])')
      | (?P<lifetime>'\w+)
      | (?P<word>(?:r\#)?[A-Za-z_]\w*)
      | (?P<number>\d[\w.]*?(?=\.\.|\.[a-z_]|[^\w.]|$))
      | (?P<sign>::|.)
    """,
    re.VERBOSE | re.DOTALL,
)
"""One token; a number ends before `..` and before `.method`."""

KEPT = {"word", "sign"}
CLOSING = {"(": ")", "[": "]", "{": "}"}


class Token(NamedTuple):
    """A word or a sign, and the line that it is on."""

    text: str
    line: int

    @property
    def is_word(self) -> bool:
        """A name or a keyword."""
        return self.text[0].isalpha() or self.text[0] == "_"


def tokens(source: str) -> list[Token]:
    """What the compiler would read. Literals are left out: no path stands in one."""
    found = []
    at, line = 0, 1
    while match := SIGNS.match(source, at):
        end = comment_end(source, at) if match["comment"] else match.end()
        if match.lastgroup in KEPT:
            found.append(Token(match[0].removeprefix("r#"), line))
        line += source.count("\n", at, end)
        at = end
    return found


def comment_end(source: str, at: int) -> int:
    """The end of a block comment, which may hold others."""
    depth = 0
    for mark in re.finditer(r"/\*|\*/", source[at:]):
        depth += 1 if mark[0] == "/*" else -1
        if depth == 0:
            return at + mark.end()
    return len(source)


def group_end(stream: list[Token], at: int) -> int:
    """The index behind the bracket that closes the one at `at`."""
    opening = stream[at].text
    depth = 0
    for index in range(at, len(stream)):
        if stream[index].text == opening:
            depth += 1
        elif stream[index].text == CLOSING[opening]:
            depth -= 1
            if depth == 0:
                return index + 1
    return len(stream)
