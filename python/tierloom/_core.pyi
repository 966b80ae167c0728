"""The private Rust core: nouns as handles, answers as plain data. Use what `tierloom` offers instead."""

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any, TypeVar

_Answer = TypeVar("_Answer")

class Machine:
    """What memory there is and what it costs to reach it, parsed and checked."""

    @staticmethod
    def from_toml(text: str, file: str) -> Machine: ...
    @staticmethod
    def from_document(document: object, file: str) -> Machine: ...
    def to_toml(self) -> str: ...
    def document(self) -> dict[str, Any]: ...

class Profile:
    """A program's data objects and how they are touched, parsed and checked."""

    @staticmethod
    def from_json(text: str, file: str) -> Profile: ...
    @staticmethod
    def from_document(document: object, file: str) -> Profile: ...
    def bytes_at_once(self) -> int: ...
    def likely_on(self, machine: Machine, socket: str | None, ran_on: Machine | None) -> Profile | None: ...
    def to_json(self) -> str: ...
    def document(self) -> dict[str, Any]: ...

class Plan:
    """Rules that say which object goes where, parsed and checked."""

    @staticmethod
    def from_toml(text: str, file: str) -> Plan: ...
    def to_toml(self) -> str: ...
    def document(self) -> dict[str, Any]: ...

class Workload:
    """What the simulator is told about a program."""

    @staticmethod
    def from_toml(text: str, file: str) -> Workload: ...
    @staticmethod
    def from_document(document: object) -> Workload:
        """Checked when it is simulated."""

    @staticmethod
    def of_profile(profile: Profile, threads: int) -> Workload: ...
    def document(self) -> dict[str, Any]: ...

class Comparison:
    """Every policy on one profile and machine."""

    def brief(self) -> dict[str, Any]:
        """The answer, but what its policies do with single objects."""

    def policy(self, at: int) -> dict[str, Any]:
        """One policy's whole result, by its position."""

    def plan(self, at: int) -> Plan:
        """One policy's placement, by its position."""

def format_bytes(amount: int) -> str:
    """Writes bytes with the largest binary unit that keeps the number at or above one."""

def parse_bytes(text: str) -> int:
    """Reads `64GiB` as bytes; a number without a unit is refused."""

def path_curve(
    machine: Machine, socket: str, memory: str, read_fraction: float, steps: int
) -> tuple[float, list[tuple[float, float]]]:
    """Peak (GB/s) of one path at a read fraction, and `(GB/s, ns)` at even steps up to 99 % of it."""

def placement_policies() -> list[str]:
    """Names of the planner's policies; shapes where nodes or numbers belong to one."""

def compare(
    machine: Machine,
    profile: Profile,
    asked: object,
    ran_on: Machine | None = None,
    brought: Sequence[tuple[str, str, Callable[..., object]]] = (),
) -> Comparison:
    """Tries every policy; see `tierloom.plan`.

    Predictions are anchored to the run where the machine that the profile was recorded on is given.
    """

def parse_budget(text: str, footprint_bytes: int) -> int:
    """Reads `64GiB`, or `40%` of the program's data, as bytes of fast memory."""

def predict(machine: Machine, profile: Profile, asked: object) -> dict[str, Any]:
    """Time of one placement; see `tierloom.predict`."""

def record_profile(
    command: Sequence[str],
    name: str,
    preload: str | None,
    asked: object,
    counting: Callable[[int | None, int, float], Sequence[str]] | None,
    analysing: Callable[[int], None] | None,
) -> tuple[Profile, bytes]:
    """Runs a program and returns its profile and its samples (an `.npy` file)."""

def analyse_recording(
    path: str | PathLike[str],
    name: str | None,
    folders: Sequence[str | PathLike[str]],
    counts: Sequence[str | PathLike[str]],
) -> tuple[Profile, bytes]:
    """Works a recording out, with files of callgrind's; files of code may be in folders."""

def describe_recording(path: str | PathLike[str], folders: Sequence[str | PathLike[str]]) -> dict[str, Any]:
    """What a recording holds, and which of its files of code are here."""

def is_being_recorded(path: str | PathLike[str]) -> bool:
    """Whether a recorder writes this file now."""

def import_perf(
    path: str, name: str | None, process: str | None, folders: Sequence[str | PathLike[str]]
) -> tuple[Profile, bytes]:
    """Works a `perf.data` file out into a profile and its samples (an `.npy` file)."""

def measure_machine(
    name: str, date: str, full: bool, tell: Callable[[float, float, str], None] | None
) -> tuple[str, dict[str, Any]]:
    """Measures this machine: a machine file (TOML), and everything behind it."""

def beside_neighbours(gb_s: float, keep: int, body: Callable[[list[int]], _Answer]) -> tuple[float, _Answer]:
    """Calls `body` with the CPUs that are left while neighbours read near memory at about `gb_s`.

    Returns what they read meanwhile, GB/s, with its answer. At least `keep` cores are left.
    """

def describe_machine(root: str) -> dict[str, Any]:
    """What the `/proc` and `/sys` below a folder tell about a machine."""

def host_identity(root: str) -> str:
    """Which host the `/proc` below a folder is of, as machine files and profiles name it; empty where nothing tells."""

def memory_kinds(machine: object) -> list[dict[str, Any]]:
    """What each memory of a machine is made of, by what is known of its nodes."""

def rising_curve(points: list[list[float]]) -> list[tuple[float, float]]:
    """`(GB/s, ns)` points in the order of growing load, as a curve that rises in both."""

def left_host_weights(root: str | PathLike[str]) -> dict[str, Any] | None:
    """The host's interleave weights as they were, if a run that set others was killed."""

def restore_host_weights(root: str | PathLike[str]) -> bool:
    """Puts back the host's interleave weights that a killed run left; whether there were any."""

def match_nodes(
    plan: Plan, given: Mapping[str, int], cpus: Sequence[int], root: str | PathLike[str]
) -> list[dict[str, Any]]:
    """Which node of the machine at a root each memory is that a plan uses, for a program on some CPUs."""

def nodes_to_give(plan: Plan, cpus: Sequence[int], root: str | PathLike[str]) -> dict[str, int]:
    """The nodes to give by hand there so that each memory that a plan uses has one; none where all are matched."""

def run_plan(
    plan: Plan, command: Sequence[str], preload: str, asked: object, watcher: Callable[[Any], None] | None
) -> dict[str, Any]:
    """Runs a program under a plan; returns what became of every rule.

    `watcher` is called with a snapshot whenever one is due.
    """

def apply_plan(pid: int, plan: Plan, nodes: Mapping[str, int]) -> dict[str, Any]:
    """Applies a plan to a program that runs under `run_plan` elsewhere; returns what was moved."""

def simulate(machine: Machine, workload: Workload, asked: object, brought: object = None) -> dict[str, Any]:
    """Simulates page migration; see `tierloom.simulate`."""

def simulate_samples(
    machine: Machine, profile: Profile, threads: int, samples: bytes, asked: object, brought: object = None
) -> dict[str, Any]:
    """Simulates a profile along its samples (the bytes of `samples.npy`)."""

def simulate_trace(
    machine: Machine, asked: object, file: str, pace: object, read: Callable[[], bytes], brought: object = None
) -> dict[str, Any]:
    """Simulates a trace whose packed rows `read` returns, none at the end; `file` is named in errors."""

def import_trace(
    kind: str, file: str, llc_bytes: int | None, read: Callable[[], bytes], write: Callable[[bytes], object]
) -> tuple[int, int]:
    """Turns a trace's text into packed rows; returns the lines read and the accesses written."""

def simulator_terms() -> dict[str, Any]:
    """Policies with their knobs, shapes of placements' names and default costs."""

class OpenPool:
    @staticmethod
    def create(
        path: str | PathLike[str], size: int, log_bytes: int | None, identity: int, backend: str
    ) -> OpenPool: ...
    @staticmethod
    def open(path: str | PathLike[str]) -> OpenPool: ...
    def backend(self) -> str: ...
    def write_back_by(self) -> str: ...
    def direct(self) -> bool: ...
    def recovered(self) -> int | None: ...
    def arrays(self) -> list[tuple[str, str, int, int, int, bool]]: ...
    def usage(self) -> tuple[int, int | None, int, int | None, int | None]: ...
    def allocate(
        self, name: str, kind: str, size: int, version: int, checksums: bool
    ) -> tuple[str, str, int, int, int, bool]: ...
    def verify(self, name: str) -> list[tuple[int, int]]: ...
    def free(self, name: str) -> None: ...
    def begin(self) -> None: ...
    def in_transaction(self) -> bool: ...
    def save(self, offset: int, size: int) -> None: ...
    def commit(self) -> None: ...
    def abort(self) -> None: ...
    def persist(self, offset: int, size: int) -> None: ...
    def grow(self, size: int) -> None: ...
    def stream(
        self, offsets: tuple[int, int, int], elements: int, cpus: list[int], rounds: int, persist: str
    ) -> list[tuple[str, list[float]]]:
        """Seconds of every counted round, by kernel."""

def stream_volatile(elements: int, cpus: list[int], rounds: int, node: int | None) -> list[tuple[str, list[float]]]:
    """STREAM in ordinary memory: seconds of every counted round, by kernel."""

def pool_backend(path: str | PathLike[str]) -> str: ...
def lacks_pmdk() -> str | None: ...
def look_at_pool(
    path: str | PathLike[str],
) -> tuple[
    str,
    str,
    tuple[int, int | None, int, int | None, int | None],
    list[tuple[str, str, int, int, int, bool]],
    int | None,
]:
    """Who keeps it, how it is durable, how full it is, its arrays, ranges that opening would undo."""

def check_pool(path: str | PathLike[str]) -> list[tuple[bool, bool, str]]: ...
def repair_pool(path: str | PathLike[str]) -> list[tuple[bool, bool, str]]: ...
def expand(parameters: str, file: str, workload: str, setup: object) -> dict[str, Any]:
    """Simulates a workload of a parameter set (TOML) under a setup; returns an outcome."""

def expand_trace(parameters: str, file: str, records: bytes, compute: float, setup: object) -> dict[str, Any]:
    """Simulates a trace of 16-byte records; `compute` is the share of instructions beside its accesses."""
