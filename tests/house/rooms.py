"""The rooms of the house: of which kind each crate is, and which others it may use. A new crate is one line here."""

from __future__ import annotations

from dataclasses import dataclass

PURE = {"noun", "engine"}
"""Kinds of rooms that never touch the outside world."""


@dataclass(frozen=True)
class Room:
    """A crate's place in the house."""

    kind: str
    uses: frozenset[str]

    @property
    def is_pure(self) -> bool:
        return self.kind in PURE


def noun(*uses: str) -> Room:
    return Room("noun", frozenset(uses))


def library() -> Room:
    """It knows nothing of ours, and could stand alone."""
    return Room("library", frozenset())


def engine(*uses: str) -> Room:
    return Room("engine", frozenset(uses))


def instrument(*uses: str) -> Room:
    return Room("instrument", frozenset(uses))


def face(*uses: str) -> Room:
    return Room("face", frozenset(uses))


def tool(*uses: str) -> Room:
    """What tests alone use."""
    return Room("tool", frozenset(uses))


ROOMS = {
    "binary": library(),
    "bursts": library(),
    "interpreter": library(),
    "model": noun(),
    "wire": noun(),
    "recording": noun("binary", "model", "wire"),
    "contention": engine("model"),
    "predict": engine("model", "contention"),
    "place": engine("model", "predict"),
    "tiering": engine("model", "contention"),
    "expander": engine("model", "contention"),
    "analysis": engine("model", "recording", "binary"),
    "linux": instrument("model"),
    "preload": instrument("wire"),
    "probe": instrument("model", "linux"),
    "pmem": instrument("model", "linux"),
    "launch": instrument("model", "wire", "binary", "linux"),
    "record": instrument("model", "wire", "recording", "binary", "bursts", "interpreter", "linux", "launch"),
    "perfdata": instrument("model", "recording", "linux"),
    "callgrind": instrument("model", "recording"),
    "runner": instrument("model", "wire", "recording", "binary", "linux", "launch"),
    "python": face(
        *("model", "contention", "predict", "place", "tiering", "expander", "linux", "pmem", "probe"),
        *("recording", "binary", "analysis", "launch", "record", "perfdata", "callgrind", "runner"),
    ),
    "fixtures": tool("model"),
    "fuzzed": tool(
        *("model", "expander", "recording", "binary", "analysis", "linux", "perfdata", "callgrind", "pmem"),
        *("tiering", "wire"),
    ),
}
"""What each crate is and may use; the order is that of the house, from the ground up."""

LAYERS = ("library", "noun", "engine", "instrument", "face", "tool")
"""A room uses rooms of its own layer and of those before it."""
