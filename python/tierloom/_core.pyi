"""The private Rust core: text in, text out. Use the functions and classes of `tierloom` instead."""

from collections.abc import Callable, Sequence
from os import PathLike

def check_machine(text: str, file: str) -> str:
    """Checks the text of a machine file (TOML) and returns the machine as JSON."""

def write_machine(document: str, file: str) -> str:
    """Writes a machine (JSON) as the text of a machine file (TOML), checked."""

def check_profile(text: str, file: str) -> str:
    """Checks the text of a profile file (JSON) and returns the profile as JSON."""

def check_plan(text: str, file: str) -> str:
    """Checks the text of a plan file (TOML) and returns the plan as JSON."""

def format_bytes(amount: int) -> str:
    """Writes bytes with the largest binary unit that keeps the number at or above one."""

def parse_bytes(text: str) -> int:
    """Reads `64GiB` as bytes; a number without a unit is refused."""

def path_curve(
    machine: str, socket: str, memory: str, read_fraction: float, steps: int
) -> tuple[float, list[tuple[float, float]]]:
    """Peak (GB/s) of one path at a read fraction, and `(GB/s, ns)` at even steps up to 99 % of it."""

def compare(machine: str, profile: str, request: str) -> str:
    """Tries every policy; takes and returns JSON (`request`: see `tierloom.compare`)."""

def make_plan(machine: str, profile: str, comparison: str, policy: str) -> str:
    """One policy of a comparison (JSON) as the text of a plan file (TOML)."""

def parse_budget(text: str, footprint_bytes: int) -> int:
    """Reads `64GiB`, or `40%` of the program's data, as bytes of fast memory."""

def predict(machine: str, profile: str, request: str) -> str:
    """Time of one placement; takes and returns JSON (`request`: see `tierloom.predict`)."""

def record_profile(
    command: Sequence[str],
    name: str,
    preload: str | None,
    asked: str,
    analysing: Callable[[int], None] | None,
) -> tuple[str, bytes]:
    """Runs a program and returns its profile (JSON) and its samples (an `.npy` file); `asked` is JSON."""

def analyse_recording(
    path: str | PathLike[str], name: str | None, folders: Sequence[str | PathLike[str]]
) -> tuple[str, bytes]:
    """Works a recording out into a profile (JSON) and its samples (an `.npy` file); files of code may be in folders."""

def describe_recording(path: str | PathLike[str], folders: Sequence[str | PathLike[str]]) -> str:
    """What a recording holds (JSON), and which of its files of code are here."""

def is_being_recorded(path: str | PathLike[str]) -> bool:
    """Whether a recorder writes this file now."""

def import_perf(path: str, name: str | None) -> tuple[str, bytes]:
    """Works a `perf.data` file out into a profile (JSON) and its samples (an `.npy` file)."""

def measure_machine(
    name: str, date: str, full: bool, tell: Callable[[float, float, str], None] | None
) -> tuple[str, str]:
    """Measures this machine: a machine file (TOML), and everything behind it (JSON)."""

def describe_machine(root: str) -> str:
    """What the `/proc` and `/sys` below a folder tell about a machine (JSON)."""

def rising_curve(points: list[list[float]]) -> list[tuple[float, float]]:
    """`(GB/s, ns)` points in the order of growing load, as a curve that rises in both."""

def left_host_weights(root: str | PathLike[str]) -> str | None:
    """The host's interleave weights as they were (JSON), if a run that set others was killed."""

def restore_host_weights(root: str | PathLike[str]) -> bool:
    """Puts back the host's interleave weights that a killed run left; whether there were any."""

def run_plan(plan: str, command: Sequence[str], preload: str, asked: str, watcher: Callable[[str], None] | None) -> str:
    """Runs a program under a plan (TOML) with options (JSON); returns what became of every rule (JSON).

    `watcher` is called with a snapshot (JSON) whenever one is due.
    """

def apply_plan(pid: int, plan: str, nodes: dict[str, int]) -> str:
    """Applies a plan (TOML) to a program that runs under `run_plan` elsewhere; returns what was moved (JSON)."""

def check_workload(text: str, file: str) -> str:
    """Checks the text of a workload file (TOML) and returns the workload as JSON."""

def profile_workload(profile: str, threads: int) -> str:
    """A profile (JSON) as a workload (JSON) for a run on so many threads."""

def simulate(machine: str, workload: str, request: str) -> str:
    """Simulates page migration; takes and returns JSON (`request`: see `tierloom.simulate`)."""

def simulate_samples(machine: str, profile: str, threads: int, samples: bytes, request: str) -> str:
    """Simulates a profile along its samples (the bytes of `samples.npy`); takes and returns JSON."""

def simulate_trace(machine: str, request: str, file: str, pace: str, read: Callable[[], bytes]) -> str:
    """Simulates a trace whose packed rows `read` returns, none at the end; `file` is named in errors. Returns JSON."""

def import_trace(
    kind: str, file: str, llc_bytes: int | None, read: Callable[[], bytes], write: Callable[[bytes], object]
) -> tuple[int, int]:
    """Turns a trace's text into packed rows; returns the lines read and the accesses written."""

def simulator_terms() -> str:
    """Policies with their knobs, shapes of placements' names and default costs, as JSON."""

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
def expand(parameters: str, file: str, workload: str, setup: str) -> str:
    """Simulates a workload of a parameter set (TOML) under a setup (JSON); returns an outcome (JSON)."""

def expand_trace(parameters: str, file: str, records: bytes, compute: float, setup: str) -> str:
    """Simulates a trace of 16-byte records; `compute` is the share of instructions beside its accesses."""
