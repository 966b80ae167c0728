"""What works on this machine, and what to do about the rest: the checks of ``tierloom doctor``.

A check tries the thing itself wherever it can, through the room that would do it for a verb: it samples a
short program, places an array, makes a control group. It returns what it found or raises what the verb
would raise, whose hint is the remedy. Adding a check: one function, one entry in :data:`CHECKS`.
"""

from __future__ import annotations

import platform
import re
import sys
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from tierloom import catalog, extras
from tierloom.debian import packages
from tierloom.errors import MeasurementError, PoolError, RecordingError, TierloomError
from tierloom.measurement import describe
from tierloom.nouns import Plan
from tierloom.plan_runner import left_host_weights, run
from tierloom.profiler import Backend, record
from tierloom.program import PRELOAD
from tierloom.units import bytes_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Verdict = Literal["works", "limited", "missing"]

BUSY = ("sh", "-c", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done")
"""A program that computes for some tenths of a second."""

ARRAY_BYTES = 16 << 20
ARRAY = f"block = bytearray(b'1') * {ARRAY_BYTES}"
"""A program with one array that a plan can place."""

PERF_EVENT = "cpu-clock"
"""What samples of ``perf_event_open`` are called in a profile."""

WEIGHTS = "sys/kernel/mm/mempolicy/weighted_interleave"
PARANOID = "proc/sys/kernel/perf_event_paranoid"


class LimitedError(Exception):
    """It works in part; the text is what is found, a last line with ``hint:`` says what would help."""


@dataclass(frozen=True)
class Finding:
    """What a check found.

    Attributes:
        check: Its name.
        serves: What it is for.
        verdict: ``works``, ``limited`` or ``missing``.
        found: What there is, or why not.
        remedy: What to do; empty where it works.
        needed: Without it nothing can be profiled or planned.
    """

    check: str
    serves: str
    verdict: Verdict
    found: str
    remedy: str
    needed: bool


@dataclass(frozen=True)
class Check:
    """One thing to try.

    Attributes:
        name: What is tried.
        serves: What needs it.
        call: Takes the folder with ``proc`` and ``sys``, returns what it found.
        needed: Without it nothing can be profiled or planned.
    """

    name: str
    serves: str
    call: Callable[[Path], str]
    needed: bool = False

    def __call__(self, root: Path) -> Finding:
        """Tries it."""
        verdict: Verdict = "works"
        try:
            text = self.call(root)
        except LimitedError as limit:
            verdict, text = "limited", str(limit)
        except TierloomError as error:
            verdict, text = "missing", str(error)
        found, _, remedy = re.sub(r"\n\s*hint:", "\nhint:", text).partition("\nhint:")
        return Finding(self.name, self.serves, verdict, found.strip(), remedy.strip(), self.needed)


@dataclass(frozen=True)
class Checkup:
    """All that was tried."""

    findings: tuple[Finding, ...]

    @property
    def ready(self) -> bool:
        """Whether programs can be profiled and planned here."""
        return all(finding.verdict != "missing" for finding in self.findings if finding.needed)

    @property
    def data(self) -> dict[str, object]:
        """The answer as a document, as the verb prints it in JSON."""
        return {"ready": self.ready, "checks": [asdict(finding) for finding in self.findings]}


def examine(root: Path = Path("/")) -> Iterator[Finding]:
    """Tries everything, one after the other.

    Args:
        root: Folder with ``proc`` and ``sys`` for what is only read there.
    """
    for check in CHECKS:
        yield check(root)


def kernel(_root: Path) -> str:
    """Linux on x86-64: instructions are decoded, and the preload library is built, for nothing else."""
    system, processor = platform.system(), platform.machine()
    if (system, processor) != ("Linux", "x86_64"):
        message = (
            f"{system} on {processor}\nhint: run it on x86-64 Linux; `tierloom plan` works with profiles from there"
        )
        raise MeasurementError(message)
    return f"Linux {platform.release()}"


def preload(_root: Path) -> str:
    """The library that goes into programs."""
    path = catalog.native_file(PRELOAD)
    if path is None:
        message = f"{PRELOAD} is not beside the package\nhint: build it with `make install`, or install a wheel"
        raise RecordingError(message)
    return str(path)


def sampling(_root: Path) -> str:
    """Samples by whichever way works: this decides whether programs can be profiled at all."""
    return _sampled("auto")


def perf_events(root: Path) -> str:
    """Samples of the kernel, which see waiting inside the kernel, too."""
    if PERF_EVENT in _sampled("auto"):
        return _sampled("auto")
    try:
        return _sampled("perf")
    except RecordingError as error:
        level = _text(root / PARANOID)
        about = f"kernel.perf_event_paranoid is {level}" if level else "the kernel has no perf events"
        told = str(error).replace("\n  hint:", "\nhint:")
        first, _, hint = told.partition("\nhint:")
        message = f"{first.strip()}; {about}\nhint:{hint}"
        raise LimitedError(message) from error


def memory_nodes(root: Path) -> str:
    """The memories that a plan can use here."""
    told = describe(root)
    nodes = told["host"]["nodes"]
    listed = ", ".join(f"node {node['node']} {node['kind']} {bytes_text(node['capacity_bytes'])}" for node in nodes)
    if len(nodes) == 1:
        message = f"{listed} alone\nhint: plan for a machine of the catalog; try placement with `tierloom lab run`"
        raise LimitedError(message)
    return listed


def page_moves(root: Path) -> str:
    """What surprises whoever leaves pages to the kernel's own migration."""
    warnings = describe(root)["warnings"]
    if warnings:
        found = "; ".join(f"{warning['what']}: {warning['cause']}" for warning in warnings)
        message = f"{found}\nhint: {'; '.join(warning['remedy'] for warning in warnings)}"
        raise LimitedError(message)
    return "nothing that would surprise"


def placing(root: Path) -> str:
    """An array is bound to the first node, and its pages are looked up: ``mbind`` and ``move_pages``."""
    node = describe(root)["host"]["nodes"][0]["node"]
    report = run(Plan(_plan()), [sys.executable, "-c", ARRAY], nodes={"first": node})
    (rule, *_) = report["rules"]
    there = rule["residency"]["by_node"].get(str(node), 0)
    problems = [*rule["problems"], *(warning["text"] for warning in report["warnings"])]
    if problems or there < ARRAY_BYTES / 2:
        found = "; ".join(problems) or f"of {ARRAY_BYTES >> 20} MiB, {bytes_text(there)} are where they should be"
        message = (
            f"{found}\nhint: a container needs CAP_SYS_NICE, or a seccomp profile that allows mbind and move_pages"
        )
        raise LimitedError(message)
    return f"an array of {ARRAY_BYTES >> 20} MiB was bound to node {node} and found there"


def host_weights(root: Path) -> str:
    """The kernel's own weighted interleave."""
    folder = root / WEIGHTS
    if not folder.is_dir():
        message = (
            "the kernel has no weights of its own\n"
            "hint: Linux 6.9 and newer have; without, each object gets its weights page by page"
        )
        raise LimitedError(message)
    left = left_host_weights(root)
    if left is not None:
        were = ", ".join(f"node{node} {weight}" for node, weight in sorted(left.items()))
        message = (
            f"they are those of a run that was killed; they were {were}\n"
            "hint: `sudo tierloom doctor --restore-weights` puts them back, and so does the next `run` as root"
        )
        raise LimitedError(message)
    return ", ".join(f"{path.name} {_text(path)}" for path in sorted(folder.glob("node*")))


def control_groups(root: Path) -> str:
    """A group with a limit of memory, as `capacity measure` makes one for each run."""
    from tierloom.capacity.experiment.limits import Limits, group

    with group(Limits(memory_bytes=1 << 30), root) as files:
        if files:
            return str(files[0].parent.parent)
    message = "no control group can be made\nhint: run as root, or in a cgroup that was delegated to you"
    raise LimitedError(message)


def emulator(_root: Path) -> str:
    """QEMU for the lab's virtual machines."""
    from tierloom.lab import qemu

    found = qemu.find()
    return f"{found.path} {found.version[0]}.{found.version[1]}"


def guest_packages(_root: Path) -> str:
    """What builds the lab's guest."""
    from tierloom.lab.packages import apt_is_there

    apt_is_there()
    return "apt, dpkg and Debian's keys"


def program(name: str, elsewhere: str = "") -> Callable[[Path], str]:
    """A check for a program on ``PATH``; the list of packages says which one brings it."""

    def find(_root: Path) -> str:
        path = packages.file_of(name)
        if path is None:
            package = packages.bringing(name)
            message = f"there is no {name} here\nhint: {package.hint if package else ''}{elsewhere}"
            raise MeasurementError(message)
        return path

    return find


def libpmemobj(_root: Path) -> str:
    """PMDK, for pools that other programs open, too."""
    from tierloom.pmem import lacks_pmdk

    if reason := lacks_pmdk():
        lines = (
            reason
            if "hint:" in reason
            else f"{reason}\nhint: {packages.named('libpmemobj1').hint}; our own format needs nothing"
        )
        raise PoolError(lines)
    return "libpmemobj"


def gpu(_root: Path) -> str:
    """A CUDA compiler and a driver, to measure what copies cost."""
    from tierloom import gpu_measurement

    return f"{gpu_measurement.compiler()}, NVIDIA driver"


def python_packages(extra: str) -> Callable[[Path], str]:
    """A check for what an extra of the package brings."""

    def find(_root: Path) -> str:
        if lacking := extras.missing(extra):
            message = f"no {', '.join(lacking)}\nhint: pip install '.[{extra}]'"
            raise LimitedError(message)
        return "installed"

    return find


CHECKS = (
    Check("kernel", "everything", kernel, needed=True),
    Check("preload library", "profile, run", preload, needed=True),
    Check("samples", "profile", sampling, needed=True),
    Check("perf events", "profile --backend perf", perf_events),
    Check("memory nodes", "run, apply, machine measure", memory_nodes),
    Check("placing pages", "run, apply", placing),
    Check("host weights", "run --set-host-weights", host_weights),
    Check("page migration", "what the kernel moves by itself", page_moves),
    Check("control groups", "capacity measure", control_groups),
    Check("QEMU", "lab", emulator),
    Check("guest packages", "lab", guest_packages),
    Check("valgrind", "profile --count, trace import", program("valgrind")),
    Check(
        "perf",
        "profile --from",
        program("perf", ", or linux-tools-$(uname -r) on Ubuntu"),
    ),
    Check("libpmemobj", "pmem --backend pmdk", libpmemobj),
    Check("GPU", "expand calibrate", gpu),
    *(Check(f"tierloom[{extra}]", serves, python_packages(extra)) for extra, serves in extras.EXTRAS.items()),
)
"""What is tried, in this order."""


@cache
def _sampled(backend: Backend) -> str:
    """Profiles a short program, and says what took how many samples."""
    sampling = record(BUSY, backend=backend).profile.data.get("sampling")
    if not sampling or not sampling["samples"]:
        message = "a program ran, and no sample was taken of it\nhint: see whether other profilers work here"
        raise RecordingError(message)
    return f"{sampling['event']}, {sampling['samples']} samples of a short program"


def _plan() -> str:
    return (
        'version = 1\nmachine = "here"\nprofile = "doctor"\npolicy = "check"\nnodes = ["first"]\n'
        'default = "first_touch"\n[predicted]\ntime_s = 1.0\nlow_s = 1.0\nhigh_s = 1.0\nthreads = 1\nbytes = [0]\n'
        f'[[rules]]\nobject = "array"\nsize_bytes = {ARRAY_BYTES}\n'
        f'select = {{ size_at_least = {ARRAY_BYTES} }}\nplace = {{ bind = ["first"] }}\n'
    )


def _text(path: Path) -> str:
    """What a file says; empty where it cannot be read."""
    try:
        return path.read_text(encoding="ascii").strip()
    except OSError:
        return ""
