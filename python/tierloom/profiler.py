"""Running a program unchanged to see how it uses its data.

The program keeps its standard streams, its exit code and its signals; everything here happens
around it.
"""

from __future__ import annotations

import glob
import shutil
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import tierloom._core as _core
from tierloom import counted_run, measured_hosts, profile_folder
from tierloom.arguments import path as a_path
from tierloom.arguments import reads, refused
from tierloom.errors import RequestError
from tierloom.nouns import Profile
from tierloom.program import interrupts_go_to_the_program, preload_library
from tierloom.standard_input import is_gone_when_read, standard_input
from tierloom.timed_runs import timed
from tierloom.units import amount_in_bytes, fraction, percent_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from tierloom.schema import NoticeDoc
    from tierloom.units import Amount

Backend = Literal["auto", "perf", "ptrace"]
"""What can take samples; `auto` is the first of the others that works here."""

DEFAULT_HZ = {"perf": 1993, "ptrace": 173}
"""Samples per second of CPU time by what takes them: primes, so that they do not march in step with the program."""

COUNTED_HZ = 4987
"""The same where executions are counted: samples then tell which objects operands touch, and a loop of a thousandth of
the run may make a hundredth of its accesses. They cost 6 % of its time (13 us each, measured as that of the usual
rate), beside a second run that takes 20 to 50 times as long."""

MOST_BURSTS = 0.2
"""The largest part of a program's time for which its next instructions are interpreted: others wait meanwhile."""


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


@reads()
def record(
    command: Sequence[str],
    *,
    name: str | None = None,
    hz: int | None = None,
    repeat: int = 0,
    backend: Backend = "auto",
    windows: bool = False,
    bursts: str | float | None = None,
    folder: str | Path | None = None,
    keep: str | Path | None = None,
    count: bool | str = False,
    llc: Amount | None = None,
    repeating: Callable[[int], AbstractContextManager[None]] | None = None,
    counting: Callable[[float], None] | None = None,
    analysing: Callable[[int], None] | None = None,
) -> Recorded:
    """Runs a program unchanged and finds its data objects and how they are touched.

    With a folder what is recorded is written there as it comes: when this process is killed, or the disk is
    full, :meth:`Profile.load` of the folder gives the profile of what was recorded until then. Saving the
    profile there ends that.

    Args:
        command: Program and arguments.
        name: Name of the profile; the program's file name by default.
        hz: Samples per second of CPU time; by default as many as cost some hundredths of it, and 2.5 times as many
            where executions are counted.
        repeat: Run the program so often without the profiler first: predictions start from the median of what these
            runs took, and know how far runs differ.

            Their output goes nowhere, and their input has to be a file.
        backend: What takes the samples; ``"auto"`` is the first of the others that works here.
        windows: Also count in copies of the program's code, some milliseconds at a time. Not finished: a program may be
            harmed.
        bursts: For so much of the program's time, as ``"2%"``, halt its threads now and then and interpret what they do
            next, to see which way branches go. Not finished.

            At most 20 %. It also shows what operands touch.
        folder: Where the profile will be saved; tried before the program starts.
        keep: File that keeps what was recorded, for `tierloom analyse` here or on another machine; what was counted is
            kept beside it.

            It grows while the program runs. :func:`tierloom.analyse` reads it. What was counted has its name with
            ``.callgrind.out`` and a number.
        count: Run the program a second time, under valgrind, and count executions there instead of estimating them;
            with ``"traffic"`` also the lines that come from memory.

            It takes 30 to 50 times as long, for traffic up to 140 times. Where it fails, a warning says so, and
            executions are estimated. Both runs have ``GLIBC_TUNABLES`` set, so that the C library runs the same code in
            both.
        llc: Last-level cache for which ``count`` counts traffic, as that of the machine to plan for; this machine's by
            default.
        repeating: What is entered, given their numbers from 1, while the program runs without the profiler.
        counting: Called when the program has ended and the second run starts, with the seconds that the first one took.
        analysing: Called with the number of samples when the program has ended and the analysis starts.

    Raises:
        ProgramError: The program cannot be started.
        RequestError: The folder or the file cannot be written or Valgrind is not here, and the program was not started.
        RecordingError: It ran, but nothing could be recorded.

    Example:
        >>> recorded = record(["true"], name="nothing")
        >>> recorded.exit_code, recorded.profile.name
        (0, 'nothing')
    """
    kind = _kind(count, llc)
    called = name or Path(command[0]).name
    with ExitStack() as stack:
        again = stack.enter_context(_again(command, kind, llc)) if kind else None
        journal = None if folder is None else stack.enter_context(profile_folder.prepared(Path(folder)))
        unrecorded = _unrecorded(command, repeat, repeating)
        stack.enter_context(interrupts_go_to_the_program())
        journal = journal if keep is None else _kept(Path(keep), journal)
        asked = {
            "hz": COUNTED_HZ if hz is None and kind and backend != "ptrace" else hz,
            "backend": backend,
            "windows": windows,
            "bursts": None if bursts is None else _bursts(bursts),
            "journal": None if journal is None else str(journal),
            "keep": keep is not None,
            "unrecorded": unrecorded,
            **measured_hosts.measured_figures(this_host()),
        }
        counted = None if again is None else _counted(again, counting, None if keep is None else Path(keep))
        profile, samples = _core.record_profile(list(command), called, preload_library(), asked, counted, analysing)
        if keep is not None and counted is None:
            _keep_counts(Path(keep), ())
    return Recorded(Profile.of_core(profile), samples)


def _unrecorded(
    command: Sequence[str], runs: int, repeating: Callable[[int], AbstractContextManager[None]] | None
) -> list[tuple[float, int]]:
    """How long runs without the recorder took, s, and how they ended; none of what cannot be started, which it says."""
    if runs and is_gone_when_read():
        message = (
            "repeat: the input of these runs would be gone for the one that is profiled, as it is no file\n"
            "hint: give it as `< FILE`, or `< /dev/null` where the program reads none"
        )
        raise RequestError(message)
    given, took = standard_input(), []
    for number in range(1, runs + 1):
        with given.opened() as stdin, repeating(number) if repeating else nullcontext():
            try:
                run = timed(command, stdin)
            except OSError:
                return []
        took.append((run.seconds, run.exit_code))
    return took


def this_host() -> str:
    """This host, as profiles and machine files name it; empty where nothing tells."""
    return _core.host_identity("/")


def _bursts(share: str | float) -> float:
    """The part of the time that bursts may take."""
    part = fraction(share)
    if not 0 < part <= MOST_BURSTS:
        most = percent_text(MOST_BURSTS)
        raise refused(share, "bursts", "not a part of the time for bursts", f"give more than 0 % and at most {most}")
    return part


def _kind(count: bool | str, llc: Amount | None) -> str | None:  # noqa: FBT001 (as the caller has it)
    """What is counted in a second run, if anything."""
    kind = counted_run.COUNTS[0] if count is True else count or None
    if kind is not None and kind not in counted_run.COUNTS:
        raise refused(count, "count", "nothing that can be counted", f"use one of: {', '.join(counted_run.COUNTS)}")
    if llc is not None and kind != "traffic":
        message = "llc does nothing without count='traffic'\nhint: leave it out, or count traffic"
        raise RequestError(message)
    return kind


def _again(command: Sequence[str], kind: str, llc: Amount | None) -> AbstractContextManager[counted_run.CountedRun]:
    llc_bytes = None if llc is None else amount_in_bytes(llc, 0)
    return counted_run.prepared(command, traffic=kind == "traffic", llc_bytes=llc_bytes)


def _counted(
    again: counted_run.CountedRun, counting: Callable[[float], None] | None, keep: Path | None
) -> Callable[[int | None, int, float], list[str]]:
    def files(exit_code: int | None, llc_bytes: int, took_s: float) -> list[str]:
        if counting is not None:
            counting(took_s)
        counted = again.files(exit_code, llc_bytes)
        if keep is not None:
            _keep_counts(keep, counted)
        return counted

    return files


def _keep_counts(keep: Path, files: Sequence[str]) -> None:
    """Those of the recording that was there before are of another run."""
    for old in kept_counts(keep):
        old.unlink()
    for file in files:
        shutil.copyfile(file, f"{keep}.{Path(file).name}")


def kept_counts(keep: Path) -> list[Path]:
    """What was counted and kept beside a recording."""
    return sorted(keep.parent.glob(f"{glob.escape(keep.name)}.callgrind.out*"))


def _kept(keep: Path, journal: Path | None) -> Path:
    """Where a recording goes that stays: not where the profile takes its place."""
    if journal is not None and keep.resolve() == journal.resolve():
        message = f"{keep}: what is recorded there goes when the profile is done\nhint: choose another name for --keep"
        raise RequestError(message)
    return keep


@reads(path=a_path)
def import_perf(
    path: str | Path,
    name: str | None = None,
    *,
    process: str | int | None = None,
    binaries: Sequence[str | Path] = (),
) -> Recorded:
    """Makes a profile of what `perf` recorded, here or elsewhere.

    Memory samples (``perf mem record``) are worked out by the addresses and latencies that they carry; samples of
    CPU time with user registers, by cpu-clock or by cycles, as our own are. Allocations are not in such a file: heap
    objects appear by their mappings.

    Args:
        path: ``perf.data``.
        name: Name of the profile; the program's file name by default.
        process: Of a file of several programs (`perf record -a`): the process to read, with what it started.
        binaries: Folders with the files of code that ran, by build id, whole path or name. What is not in
            them is looked for where it ran.

    Raises:
        RequestError: There is no such file, it cannot be worked out, or it has several programs.
        RecordingError: The file cannot be read.
    """
    _refuse_what_is_no_file(Path(path))
    for folder in binaries:
        if not Path(folder).is_dir():
            message = f"{folder}: there is no such folder\nhint: give a folder with the files of code that ran"
            raise RequestError(message)
    chosen = None if process is None else str(process)
    profile, samples = _core.import_perf(str(path), name, chosen, list(binaries))
    return Recorded(Profile.of_core(profile), samples)


def _refuse_what_is_no_file(path: Path) -> None:
    """A folder of `perf record --kcore` holds a file; what streams has to become one."""
    if str(path) == "-" or (path.exists() and not path.is_file() and not (path / "data").is_file()):
        message = f"{path}: it is no file\nhint: write what comes into one first: cat > perf.data"
        raise RequestError(message)
    if not path.exists():
        message = f"{path}: there is no such file\nhint: give the file that `perf record` wrote"
        raise RequestError(message)
