"""Real programs: running one unchanged to see how it uses its data, and running one under a plan.

The program keeps its standard streams, its exit code and its signals; everything here happens
around it.
"""

from __future__ import annotations

import json
import os
import signal
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import tierloom._core as _core
from tierloom import lookup, profile_folder
from tierloom.errors import RecordingError, RequestError
from tierloom.nouns import Plan, Profile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tierloom.schema import AppliedDoc, NoticeDoc, RunDoc, SnapshotDoc

PRELOAD = "libtierloom_preload.so"
BACKENDS = ("auto", "perf", "ptrace")
"""What can take samples; `auto` is the first of the others that works here."""

DEFAULT_HZ = {"perf": 997, "ptrace": 173}
"""Samples per second of CPU time by what takes them: primes, so that they do not march in step with the program."""


@dataclass(frozen=True)
class Recorded:
    """A program that ran: its profile, its samples (an ``.npy`` file), and how it ended."""

    profile: Profile
    samples: bytes

    @property
    def exit_code(self) -> int:
        """The program's exit code; 128 + signal when it was killed."""
        return self.profile.data["program"].get("exit_code", 0)

    @property
    def warnings(self) -> list[NoticeDoc]:
        """What the reader should know before believing the numbers: each has its kind and a sentence."""
        return list(self.profile.data.get("sampling", {}).get("warnings", []))

    def save(self, folder: str | Path) -> None:
        """Writes the profile's folder.

        Raises:
            OutputError: There is no room for it; what was recorded there is kept.
            RequestError: It cannot be written there.
        """
        self.profile.save(folder, self.samples)


def record(
    command: Sequence[str],
    *,
    name: str | None = None,
    hz: int | None = None,
    backend: str = "auto",
    folder: str | Path | None = None,
    keep: str | Path | None = None,
    analysing: Callable[[int], None] | None = None,
) -> Recorded:
    """Runs a program unchanged and finds its data objects and how they are touched.

    With a folder what is recorded is written there as it comes: when this process is killed, or the disk is
    full, :meth:`Profile.load` of the folder gives the profile of what was recorded until then. Saving the
    profile there ends that.

    Args:
        command: Program and arguments.
        name: Name of the profile; the program's file name by default.
        hz: Samples per second of CPU time; by default as many as cost about a hundredth of it.
        backend: ``"perf"``, ``"ptrace"``, or ``"auto"`` for the first of them that works here.
        folder: Where the profile will be saved; tried before the program starts.
        keep: A file for the recording, which grows there and stays; :func:`tierloom.analyse` reads it.
        analysing: Called with the number of samples when the program has ended and the analysis starts.

    Raises:
        ProgramError: The program cannot be started.
        RequestError: The folder or the file cannot be written, and the program was not started.
        RecordingError: It ran, but nothing could be recorded.
    """
    called = name or Path(command[0]).name
    with ExitStack() as stack:
        journal = None if folder is None else stack.enter_context(profile_folder.prepared(Path(folder)))
        stack.enter_context(_interrupts_go_to_the_program())
        journal = journal if keep is None else _kept(Path(keep), journal)
        asked = {
            "hz": hz,
            "backend": backend,
            "journal": None if journal is None else str(journal),
            "keep": keep is not None,
        }
        told = _core.record_profile(list(command), called, _preload(), json.dumps(asked), analysing)
    profile, samples = told
    return Recorded(Profile(profile), samples)


def _kept(keep: Path, journal: Path | None) -> Path:
    """Where a recording goes that stays: not where the profile takes its place."""
    if journal is not None and keep.resolve() == journal.resolve():
        message = f"{keep}: what is recorded there goes when the profile is done\nhint: choose another name for --keep"
        raise RequestError(message)
    return keep


def import_perf(path: str | Path, name: str | None = None) -> Recorded:
    """Makes a profile of what `perf` recorded, here or elsewhere.

    CPU-clock samples with user registers are worked out as our own are; memory samples (``perf mem
    record``) by the addresses and latencies that they carry. The program's files must be where they
    were. Allocations are not in such a file: heap objects appear by their mappings.

    Args:
        path: ``perf.data``.
        name: Name of the profile; the program's file name by default.

    Raises:
        RequestError: There is no such file.
        RecordingError: The file cannot be read or worked out.
    """
    if not Path(path).is_file():
        message = f"{path}: there is no such file\nhint: give the file that `perf record` wrote"
        raise RequestError(message)
    profile, samples = _core.import_perf(str(path), name)
    return Recorded(Profile(profile), samples)


def run(
    plan: Plan,
    command: Sequence[str],
    *,
    nodes: Mapping[str, int] | None = None,
    hold: bool = False,
    hint_faults: bool | None = None,
    set_host_weights: bool = False,
    watch: tuple[float, Callable[[SnapshotDoc], None]] | None = None,
) -> RunDoc:
    """Runs a program with its objects placed as a plan says.

    Args:
        plan: Which object goes where.
        command: Program and arguments.
        nodes: Nodes of the plan whose number on this machine is not their position in the plan.
        hold: Lock pages where they are put, so that the kernel does not demote them.
        hint_faults: Whether the kernel may take hint faults on placed objects, and so migrate their
            pages; by default as each policy has it.
        set_host_weights: Set the host's interleave weights to the plan's while the program runs: the
            kernel then deals out all memory of weighted rules by itself. Takes root.
        watch: Seconds between two snapshots of where pages are, and what is called with each.

    Returns:
        The program's exit code, where every object ended up, and what could not be done.

    Raises:
        ProgramError: The program cannot be started.
        RequestError: The plan cannot be what the host does.
        RecordingError: It could not be placed.
    """
    options = {"hold": hold, **({} if hint_faults is None else {"hint_faults": hint_faults})}
    every_s, watcher = watch or (None, None)
    asked = {
        "nodes": dict(nodes or {}),
        "options": options,
        "set_host_weights": set_host_weights,
        "watch_s": every_s,
    }
    tell = None if watcher is None else lambda text: watcher(json.loads(text))
    with _interrupts_go_to_the_program():
        report: Any = json.loads(_core.run_plan(plan.text, list(command), _preload(), json.dumps(asked), tell))
    return cast("RunDoc", report)


def apply(pid: int, plan: Plan, *, nodes: Mapping[str, int] | None = None) -> AppliedDoc:
    """Moves the objects of a running program to where another plan wants them.

    The program must have been started by :func:`run`, in whatever process. What it allocates from now
    on goes by the new plan, too.

    Args:
        pid: Process id of the program.
        plan: Which object goes where from now on.
        nodes: As for :func:`run`.

    Returns:
        What was moved, by rule.

    Raises:
        RequestError: There is no such program, or it does not run under a plan.
    """
    return cast("AppliedDoc", json.loads(_core.apply_plan(pid, plan.text, dict(nodes or {}))))


def left_host_weights(root: Path = Path("/")) -> dict[int, int] | None:
    """The host's interleave weights as they were, by node, if a run that had set others was killed.

    Args:
        root: Folder with ``proc``, ``run`` and ``sys``.
    """
    text = _core.left_host_weights(root)
    return None if text is None else {int(node): weight for node, weight in json.loads(text)["weights"].items()}


def restore_host_weights(root: Path = Path("/")) -> bool:
    """Puts back the host's interleave weights that a killed run left; whether there were any.

    Args:
        root: Folder with ``proc``, ``run`` and ``sys``.

    Raises:
        RecordingError: Not root.
    """
    return _core.restore_host_weights(root)


def _preload() -> str:
    path = lookup.native_file(PRELOAD)
    if path is None:
        message = f"{PRELOAD} is not beside the package\nhint: build it with `make install`, or install a wheel"
        raise RecordingError(message)
    return str(path)


@contextmanager
def _interrupts_go_to_the_program() -> Iterator[None]:
    """Ctrl-C reaches the program through the terminal; we stay to save what was recorded.

    A handler and not ``SIG_IGN``: the program would inherit that.
    """
    if os.name != "posix" or not _in_main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _in_main_thread() -> bool:
    import threading

    return threading.current_thread() is threading.main_thread()
