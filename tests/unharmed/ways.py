"""The ways in which a program is started: on its own, and under every verb of Tierloom that starts programs.

`Alone` and `Typed` become what is typed at a prompt. `Called` does the same work through the Python API, in a
process that has imported it already: that saves a second a run. Each of them takes over a process of its own.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from three_ways import PLAN

from tierloom import plan_runner, profiler
from tierloom.nouns import Plan

TIERLOOM = str(Path(sys.executable).parent / "tierloom")
BACKENDS = tuple(backend for backend in get_args(profiler.Backend) if backend != "auto")
PLAN_FILE = "it.plan.toml"
NOTHING = PLAN.replace("size_at_least = 32768", "size_at_least = 1099511627776")
"""A plan whose rule no block matches."""


@dataclass(frozen=True)
class Way(ABC):
    """One way to start a program."""

    words: tuple[str, ...] = ()
    """What stands before the program's own words on the command line."""

    @property
    def name(self) -> str:
        """Short, for the names of tests."""
        return "alone"

    @property
    def ours_follow(self) -> bool:
        """Whether Tierloom's words come after the program's on stderr."""
        return False

    def typed(self, command: list[str]) -> list[str]:
        """The command line to see the same again."""
        return [*self.words, *command]

    @abstractmethod
    def take_over(self, command: list[str], told: Path) -> int:
        """Runs the program in the present process, which ends with the code that this returns."""


@dataclass(frozen=True)
class Alone(Way):
    """Without us."""

    def take_over(self, command: list[str], told: Path) -> int:  # noqa: ARG002 (there is nothing to tell)
        return _become(command)


@dataclass(frozen=True)
class Under(Way):
    """Under `tierloom profile` with one back-end, or under `tierloom run`."""

    backend: str | None = None
    """None for `run`."""
    plan: str = PLAN
    windows: bool = False
    """Whether `profile` counts in copies of the program's code, too."""

    @property
    def verb(self) -> str:
        windows = "-windows" if self.windows else ""
        return f"profile-{self.backend}{windows}" if self.backend else "run"


class Typed(Under):
    """By the command line."""

    @property
    def name(self) -> str:
        return f"typed-{self.verb}"

    @property
    def ours_follow(self) -> bool:
        return True

    def take_over(self, command: list[str], told: Path) -> int:  # noqa: ARG002 (it tells by its exit code)
        self._write_plan()
        return _become(self.typed(command))

    def _write_plan(self) -> None:
        Path(PLAN_FILE).write_text(self.plan)


class Called(Under):
    """Through the Python API."""

    @property
    def name(self) -> str:
        return self.verb

    def take_over(self, command: list[str], told: Path) -> int:
        try:
            code, document = self._recorded(command) if self.backend else self._placed(command)
        except Exception:
            told.write_text(json.dumps({"trouble": traceback.format_exc()}))
            return 1
        told.write_text(json.dumps(document))
        return code

    def _recorded(self, command: list[str]) -> tuple[int, dict]:
        recorded = profiler.record(command, backend=str(self.backend), windows=self.windows)
        return recorded.exit_code, {
            "warnings": [warning["text"] for warning in recorded.warnings],
            "samples": _samples(recorded),
        }

    def _placed(self, command: list[str]) -> tuple[int, dict]:
        report = plan_runner.run(Plan(self.plan), command)
        return report["exit_code"], {"warnings": [warning["text"] for warning in report["warnings"]]}


def _samples(recorded: profiler.Recorded) -> int:
    return recorded.profile.data["sampling"]["samples"]


def _become(command: list[str]) -> int:
    """What a shell does: the program gets its signals as they are at the start of a session."""
    for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(command[0], command)  # noqa: S606 (no shell may stand between us and the program)
    except OSError:
        return 127


def under(kind: type[Under], backend: str | None, plan: str = PLAN, *, windows: bool = False) -> Under:
    """One verb, as typed or as called."""
    verb = ("profile", "--backend", backend, "-o", "it.profile") if backend else ("run", "--plan", PLAN_FILE)
    return kind((TIERLOOM, *verb, *(["--windows"] if windows else []), "--"), backend, plan, windows)


ALONE = Alone()
CALLED = tuple(under(Called, backend) for backend in (*BACKENDS, None))
IN_COPIES = tuple(under(Called, backend, windows=True) for backend in BACKENDS)
TYPED = tuple(under(Typed, backend) for backend in ("auto", None))
