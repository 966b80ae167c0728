"""The documents of machines, profiles, plans and comparisons, as their Rust nouns define them.

Written by `tools/documents.py`: change the nouns in `crates/model`, not this file.
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

Kind = Literal["measured", "published", "derived", "assumed"]
"""What kind of number a figure is; reports carry the mark through to the reader."""


class Figure(TypedDict):
    """A value with its origin."""

    value: float
    """The value, in the unit that the field's name says."""
    kind: Kind
    """What kind of number it is."""
    source: str
    """Key of the file's `sources` table."""
    how: NotRequired[str]
    """The arithmetic of a derived figure, the reason of an assumed one."""


class SocketDoc(TypedDict):
    """A group of cores with a last-level cache: an initiator."""

    name: str
    """Name that paths refer to."""
    cpu: str
    """Processor model."""
    cores: Figure
    """Physical cores."""
    llc_bytes: Figure
    """Last-level cache of the whole socket, bytes."""
    llc_per_core_bytes: Figure
    """Last-level cache that one core reaches (a core complex on AMD), bytes."""
    core_cache_bytes: NotRequired[Figure]
    """Cache of one core before the last level, bytes; absent where there is none, or nobody looked."""
    llc_ns: NotRequired[Figure]
    """Latency of the last-level cache, ns; absent where nobody measured it."""
    stream_lines: Figure
    """Cache lines that one core keeps in flight when the hardware prefetches for it."""
    demand_lines: Figure
    """Cache lines that one core keeps in flight for demand misses (line-fill buffers)."""


MemoryKindDoc = Literal["dram", "lpddr", "cxl", "hbm", "pmem", "ssd"]
"""What a memory is made of."""


class MemoryDoc(TypedDict):
    """A memory node: a target."""

    name: str
    """Name that paths and plans refer to."""
    kind: MemoryKindDoc
    """What it is made of."""
    socket: str
    """Socket that it hangs on."""
    capacity_bytes: Figure
    """Bytes."""
    lines_in_flight: NotRequired[Figure]
    """Most cache lines that are under way to it at once, from all sockets: requests that its device or its controller
    takes. Lines beyond wait before they are sent. Absent where only the cores limit them.
    """
    usd_per_gib: NotRequired[Figure]
    """Price, US dollars per GiB."""


class LinkDoc(TypedDict):
    """An interconnect that several paths share: between sockets, or up to a switch."""

    name: str
    """Name that paths refer to."""
    gb_s_each_way: Figure
    """Payload bandwidth of one direction, GB/s; reads use one direction, writes the other."""


class Origin(TypedDict):
    """Where a number comes from."""

    kind: Kind
    """What kind of number it is."""
    source: str
    """Key of the file's `sources` table."""
    how: NotRequired[str]
    """The arithmetic of a derived figure, the reason of an assumed one."""


class CurveDoc(TypedDict):
    """Latency against bandwidth at one read fraction."""

    read_fraction: float
    """Share of reads in the traffic, 0 to 1 by bytes."""
    points: list[list[float]]
    """`[GB/s, ns]`, both growing; the last point is the highest bandwidth that was reached."""
    origin: Origin
    """Where the points come from."""


PeakDoc = dict[str, Any]
"""Highest bandwidth by read fraction `r`."""


ShapeDoc = dict[str, Any]
"""Latency above idle at utilisation `u` of the peak, in ns."""


class FormDoc(TypedDict):
    """A peak by read fraction and the shape of the rise towards it."""

    peak: PeakDoc
    """Highest bandwidth by read fraction."""
    shape: ShapeDoc
    """Latency above the path's idle latency, by utilisation of the peak."""
    origin: Origin
    """Where the parameters come from."""


LoadDoc = dict[str, Any]
"""Loaded latency of one path, alone in use, by read fraction."""


PathDoc = TypedDict(
    "PathDoc",
    {
        "from": str,
        "to": str,
        "idle_ns": Figure,
        "random_idle_ns": NotRequired[Figure],
        "links": NotRequired[list[str]],
        "writes_at_home": NotRequired[Figure],
        "load": LoadDoc,
    },
)
"""From a socket to a memory."""


class MachineDoc(TypedDict):
    """What memory there is and what it costs to reach it. File: `NAME.toml`."""

    kind: NotRequired[Literal["machine"]]
    """What this file is; absent in files that say their version only."""
    version: int
    """Format version."""
    name: str
    """Short name, as on the command line."""
    title: str
    """One line for people."""
    host: NotRequired[str]
    """Which host was measured (`crate::Program::host` of what runs there); absent for machines on paper."""
    notes: NotRequired[list[str]]
    """Longer remarks: what was left out, what to be careful with."""
    sources: dict[str, str]
    """What the `source` keys stand for."""
    sockets: list[SocketDoc]
    """Where threads run. The first one is where a program runs unless told otherwise."""
    memories: list[MemoryDoc]
    """Where data lives, in the order of the kernel's node numbers."""
    links: NotRequired[list[LinkDoc]]
    """Interconnects that several paths share."""
    paths: list[PathDoc]
    """From each socket to each memory that it can reach."""


class ProgramDoc(TypedDict):
    """What ran, and where."""

    command: list[str]
    """Command line; a description when it never ran."""
    exit_code: NotRequired[int]
    """Exit code; 128 + signal when it was killed; absent when it never ran, or nobody saw its end."""
    signal: NotRequired[str]
    """Name of the signal that killed it."""
    wall_s: float
    """Elapsed time, s."""
    cpu_s: float
    """CPU time of all threads, s."""
    system_s: NotRequired[float]
    """The part of it that the kernel worked for them, s; absent where nobody told."""
    queued_s: NotRequired[float]
    """Time in which its threads had no CPU, because other programs did, s, all together; absent where nobody told."""
    held_s: NotRequired[float]
    """Time in which the profiler held its threads, or in which they ran its code or waited for it, s, all together;
    absent where nobody told.
    """
    sampled_s: NotRequired[float]
    """The part of `cpu_s` that taking samples took, s; absent where nobody measured it."""
    unprofiled_s: NotRequired[list[float]]
    """Elapsed times of runs without the profiler, on the same machine, s: phases take as long together as their median.
    """
    objects_bytes: NotRequired[int]
    """Most memory that all its objects had at once, bytes; absent where nobody followed their allocations."""
    threads: int
    """Most threads that ran at once."""
    cpu: str
    """Processor that the traffic holds for."""
    host: NotRequired[str]
    """Which host it ran on, so that a machine file that was measured there is known; absent where nobody told."""
    llc_bytes: int
    """Last-level cache that the traffic holds for: what one core reaches, bytes."""
    memory_ns: NotRequired[float]
    """Latency of the memory next to it, ns, which bounds the traffic by the time that was waited; absent where nobody
    had measured it.
    """


ObjectKindDoc = Literal["heap", "static", "constant", "mmap", "file", "arena"]
"""What an object is to the program."""


class InlinedIntoDoc(TypedDict):
    """A function with another one inlined into it."""

    function: NotRequired[str]
    """Its name."""
    line: NotRequired[str]
    """`file:line` of the call that was inlined."""


class FrameDoc(TypedDict):
    """A return address that survives address-space randomisation."""

    module: str
    """File name of the executable or library."""
    build_id: NotRequired[str]
    """Build id in hexadecimal; empty when the module has none."""
    offset: int
    """Offset of the return address in the module's virtual addresses."""
    function: NotRequired[str]
    """Function, where symbols exist; of functions that were inlined here, the innermost."""
    line: NotRequired[str]
    """`file:line`, where line tables exist."""
    inlined_into: NotRequired[list[InlinedIntoDoc]]
    """The functions that this one was inlined into, nearest first; none where it was called."""


SiteDoc = dict[str, Any]
"""How to find an object again in another run."""


class ShareDoc(TypedDict):
    """A share with its 95 % confidence interval: of CPU time, by samples, where nothing else is said."""

    share: float
    """0 to 1."""
    low: float
    """Lower end of the interval."""
    high: float
    """Upper end of the interval."""


CountSourceDoc = Literal["estimated", "counted"]
"""Where numbers of accesses come from."""


class AccessCountDoc(TypedDict):
    """How often instructions touched an object, with its 95 % confidence interval."""

    count: float
    """Executions, of a string instruction its rounds: one that moves a vector counts once, whatever elements it has,
    and so does one that reads and writes back.
    """
    low: float
    """Lower end of the interval."""
    high: float
    """Upper end of the interval."""
    source: NotRequired[CountSourceDoc]
    """`counted` where all of them were; absent where they are estimated."""


class DataSourceDoc(TypedDict):
    """Where the data of an object's sampled accesses came from, as the processor tells it."""

    remote: float
    """Share of the accesses whose data came from another node, from its memory or its caches, 0 to 1."""
    shared: float
    """Share of the accesses whose data another core's cache gave: modified there, or of Arm any, 0 to 1."""
    load_cycles: NotRequired[float]
    """Cycles that a load took on average; absent where no load has a latency."""
    store_cycles: NotRequired[float]
    """Cycles that a store took on average; absent where no store has a latency."""


class MissPointDoc(TypedDict):
    """A point of a miss-ratio curve: a last-level cache that all objects of the program share."""

    cache_bytes: int
    """Size of the cache."""
    share: float
    """Share of the object's touched lines that comes from memory, 0 to 1, where touches are independent of each other.
    """


class ObjectDoc(TypedDict):
    """A data object: everything allocated at one site, or one static array."""

    name: str
    """Unique within the profile."""
    kind: ObjectKindDoc
    """What it is to the program."""
    site: SiteDoc
    """How to find it again in another run."""
    line: NotRequired[str]
    """Statement of the program that allocates it, `file:line`; absent where it is not known."""
    size_bytes: int
    """Most memory that it had at once, bytes: pages that were touched, where somebody looked; else its addresses."""
    address_bytes: NotRequired[int]
    """Most bytes of addresses that it had at once, where they are more than its memory."""
    allocations: int
    """How many times it was allocated."""
    first_s: float
    """Seconds from the start of the run to the first allocation."""
    last_s: float
    """Seconds from the start of the run to the last release, or to the end."""
    first_touch_s: float
    """Seconds from the start of the run to the first touch; only the order matters."""
    populated_s: NotRequired[float]
    """Seconds from the start of the run to when all its pages had been touched, taken as even from the first touch on;
    at once where it is not known.
    """
    stall: NotRequired[ShareDoc]
    """Share of the CPU time in which a thread waited for this object."""
    accesses: NotRequired[AccessCountDoc]
    """Accesses in the whole run, with how far they may be off; absent where that is not known."""
    data_source: NotRequired[DataSourceDoc]
    """Where the processor found the data of its sampled accesses; absent where it was not asked."""
    hotness: NotRequired[list[float]]
    """Share of the object's accesses in each sixteenth of its pages, hottest first; empty when not known, which engines
    take as uniform.
    """
    miss_curve: NotRequired[list[MissPointDoc]]
    """Share of its touched lines that comes from memory, by size of the last-level cache, smallest first; empty where
    that is not known, or is the same for all.
    """
    origin: NotRequired[Origin]
    """Where the size comes from, when it was not measured in this run."""


PatternDoc = Literal["stream", "strided", "random", "chain"]
"""How consecutive accesses of one kind follow each other."""


class WithinDoc(TypedDict):
    """Factors on a figure, between which the truth lies."""

    low: float
    """0 to 1."""
    high: float
    """1 or more."""


class BeyondCoreDoc(TypedDict):
    """Lines that there was time to wait for, over those of independent touches; more than 1 tells nothing."""

    likely: float
    """The likely part, 0 or more."""
    high: float
    """The most."""


class TouchedDoc(TypedDict):
    """Lines that an access pattern touched, whatever cache they were found in."""

    bytes: float
    """Bytes of the lines touched, a line as often as the program comes back to it from somewhere else."""
    filled_bytes: float
    """Part of `dram_read_bytes` that the kernel brought into the cache when it filled the pages: nobody waits for it.
    """
    mlp: float
    """Misses that one thread would keep in flight if every touch missed."""
    beyond_core: NotRequired[BeyondCoreDoc]
    """What the caches before the last level let through, by the time that was seen to be waited; absent where the
    machine of the run was not measured.
    """
    cache_wait_s: float
    """CPU time of all threads that was seen to wait for these lines from caches, s; the phase's `compute_s` holds it.
    """


class AccessDoc(TypedDict):
    """Accesses of one pattern to one object during one phase, all threads together."""

    object: str
    """Name of the object."""
    pattern: PatternDoc
    """How the accesses follow each other."""
    reads: float
    """Elements loaded: a vector of four doubles counts four."""
    writes: float
    """Elements stored."""
    read_bytes: float
    """Bytes loaded."""
    write_bytes: float
    """Bytes stored."""
    dram_read_bytes: float
    """Bytes that came from memory into the last-level cache, fetches for stores included."""
    dram_write_bytes: float
    """Bytes written back to memory."""
    traffic_within: NotRequired[WithinDoc]
    """Between which factors of them they lie, with 95 % probability; absent where nobody knows."""
    mlp: float
    """Misses that one thread keeps in flight, of those that it waits for; engines cap it by what the core can do."""
    touched: NotRequired[TouchedDoc]
    """What it touched, whatever cache that was found in; absent where that is not known."""
    wait_s: NotRequired[float]
    """CPU time of all threads that was seen to wait for these lines from memory, s; absent where that was not sampled.
    """
    wait_factor: NotRequired[float]
    """That waiting over what lines, misses in flight and latency come to on the machine of the run; absent, and 1,
    where that machine was not measured.
    """
    origin: NotRequired[Origin]
    """Where the numbers come from, when they were not measured in this run."""


class PhaseDoc(TypedDict):
    """A stretch of the run with one behaviour."""

    name: str
    """Name for people."""
    start_s: float
    """Seconds from the start of the run."""
    end_s: float
    """Seconds from the start of the run."""
    threads: int
    """Threads that share the work."""
    compute_s: float
    """CPU time of all threads without waiting for memory beyond the last-level cache or for each other, s."""
    idle_s: NotRequired[float]
    """Time in which none of its threads did anything, s: they waited for input or output, and not for a CPU; absent
    where that was not measured.
    """
    meeting_s: NotRequired[float]
    """Time that it took longer because its threads waited for each other, s: at barriers, or while one of them worked
    alone. One thread has none of it.
    """
    in_regions: NotRequired[float]
    """Share of its CPU time, 0 to 1, that its one thread spent in parallel regions of OpenMP, which more threads would
    share out; absent of several threads, and where nobody looked.
    """
    accesses: list[AccessDoc]
    """Accesses by object and pattern."""


class UnattributedDoc(TypedDict):
    """CPU time that belongs to no object: `[compute]`, `[stack]`, `[kernel]`, `[unrecovered]`, `[other]`."""

    name: str
    """Name in brackets."""
    stall: ShareDoc
    """Its share of all CPU time."""


class UnplacedDoc(TypedDict):
    """Accesses that were counted and belong to no object."""

    accesses: float
    """Load and store instructions."""
    bytes: float
    """Bytes loaded and stored."""
    share: float
    """Their share of all bytes that were loaded and stored elsewhere than on stacks, 0 to 1."""


class CountedTrafficDoc(TypedDict):
    """Memory traffic that was counted in simulated caches."""

    llc_bytes: int
    """Size of the last-level cache for which it was."""
    elsewhere_bytes: float
    """What was fetched and belongs to no object: stacks, and what no sample shows."""


class NoticeDoc(TypedDict):
    """A warning in a file: its kind and its sentence; what else it holds hangs on the kind."""

    kind: str
    """Which warning it is."""
    text: str
    """What it says."""


class SamplingDoc(TypedDict):
    """How the samples were taken."""

    event: str
    """`cpu-clock` by `perf_event_open`, or `ptrace`."""
    hz: float
    """Samples per second of CPU time that were asked for."""
    samples: int
    """Samples taken."""
    lost: int
    """Samples lost."""
    skid_purity: float
    """Share of calibration samples that landed exactly one instruction past the stalled one."""
    not_sampled: NotRequired[UnplacedDoc]
    """What was counted and whose object no sample shows; absent where nothing was counted."""
    thread_local: NotRequired[UnplacedDoc]
    """What was counted and is of thread-local storage; absent where nothing was counted."""
    counted_traffic: NotRequired[CountedTrafficDoc]
    """For which cache memory traffic was counted; absent where it was estimated."""
    warnings: NotRequired[list[NoticeDoc]]
    """What the reader should know before believing the numbers."""


class ProfileDoc(TypedDict):
    """A program's data objects and how they are touched. File: `NAME.profile/profile.json`."""

    kind: NotRequired[Literal["profile"]]
    """What this file is; absent in files that say their version only."""
    version: int
    """Format version."""
    name: str
    """Short name."""
    program: ProgramDoc
    """What ran, and where."""
    sources: NotRequired[dict[str, str]]
    """What the `source` keys stand for; empty when everything was measured in one run."""
    objects: list[ObjectDoc]
    """Data objects."""
    phases: list[PhaseDoc]
    """Stretches of the run, in time order."""
    unattributed: NotRequired[list[UnattributedDoc]]
    """CPU time that belongs to no object; with the objects' it sums to 1."""
    sampling: NotRequired[SamplingDoc]
    """How the samples were taken; absent in profiles that were derived on paper."""


class PlanMemoryDoc(TypedDict):
    """One of a plan's memories, as seen from the socket that the plan was made for."""

    name: str
    """Name, as in the plan's `nodes`."""
    kind: MemoryKindDoc
    """What it is made of."""
    near: bool
    """Whether it hangs on that socket."""
    capacity_bytes: int
    """Bytes."""
    idle_ns: NotRequired[float]
    """Latency of a dependent random read when nothing else runs, ns; none where no path leads."""
    gb_s: NotRequired[float]
    """Lesser of read and write bandwidth, GB/s; none where no path leads."""


class PredictedDoc(TypedDict):
    """What a plan should bring."""

    time_s: float
    """Run time, s."""
    low_s: float
    """Lower end of the range, s."""
    high_s: float
    """Upper end of the range, s."""
    threads: int
    """Threads that the time holds for."""
    bytes: list[int]
    """Bytes in each memory, in the order of `nodes`."""


Action = Literal["first_touch"] | dict[str, Any]
"""Where memory goes: the kernel's memory policies."""


SelectorDoc = dict[str, Any]
"""Which memory of the running program is meant."""


class RuleOptionsDoc(TypedDict):
    """What is asked of the kernel beside an object's place."""

    hold: NotRequired[bool]
    """Pages stay where they are put: the kernel must not demote them."""
    hint_faults: NotRequired[bool]
    """Whether the kernel may take hint faults on the object, and so migrate its pages; by default as the policy has it:
    only first touch has them.
    """
    unit_bytes: NotRequired[int]
    """Bytes that weights deal out at a time, a power of two; by default the object's own pages."""


class RuleDoc(TypedDict):
    """One object and its place."""

    object: str
    """Name in the profile, for people."""
    size_bytes: int
    """Size in the profile, for people."""
    select: SelectorDoc
    """Which memory of the running program is meant."""
    place: Action
    """Where it goes."""
    options: NotRequired[RuleOptionsDoc]
    """What else is asked of the kernel."""


class PhaseMoveDoc(TypedDict):
    """One object's new place."""

    object: str
    """The object of a rule."""
    place: Action
    """Where it goes."""


class PlanPhaseDoc(TypedDict):
    """A stretch of the run in which some objects live elsewhere. Memory is moved when it begins, if that pays."""

    name: str
    """Name for people."""
    start_s: float
    """When it begins, seconds from the start of the run."""
    gain_s: float
    """Time that the new places save from here to the next phase, without what moving costs, s."""
    moves: list[PhaseMoveDoc]
    """Objects of `rules` and where each lives from here on; the others stay."""


class PlanDoc(TypedDict):
    """Which object goes where. File: `NAME.plan.toml`."""

    kind: NotRequired[Literal["plan"]]
    """What this file is; absent in files that say their version only."""
    version: int
    """Format version."""
    machine: str
    """Machine that the plan was made for."""
    profile: str
    """Profile that the plan was made from."""
    policy: str
    """Policy that made it."""
    nodes: list[str]
    """Names of the machine's memories. Which node of another machine each is follows from `memories`."""
    memories: NotRequired[list[PlanMemoryDoc]]
    """What these memories are, in the order of `nodes`; empty in older files and where a person left it out."""
    predicted: PredictedDoc
    """What the plan should bring."""
    default: Action
    """Where memory goes that no rule selects."""
    rules: NotRequired[list[RuleDoc]]
    """First rule that selects an object wins."""
    phases: NotRequired[list[PlanPhaseDoc]]
    """Stretches of the run with places of their own, in time order; empty where one place is best for the whole run."""


class AnchorDoc(TypedDict):
    """The run that predictions are anchored to."""

    machine: str
    """Machine that it ran on."""
    threads: int
    """Threads that it had."""
    measured_s: float
    """What it takes, s: the median of runs without the profiler, or the profiled one less what others and the profiler
    took.
    """
    least_s: float
    """The least of 95 % of further runs, s; of the profiled one alone, if its threads wait for each other at every
    step.
    """
    most_s: float
    """The most of 95 % of further runs, s; of the profiled one alone, if its threads never meet."""
    unprofiled_runs: NotRequired[int]
    """Runs without the profiler that this is known from."""
    modelled_s: float
    """What the model gives for it without knowing that, s."""


Bound = Literal["compute", "latency"] | dict[str, Any]
"""What keeps a program, or a phase of it, from being faster."""


class PhasePredictionDoc(TypedDict):
    """What one phase comes to under a placement."""

    phase: str
    """Phase."""
    time_s: float
    """Its time, s."""
    compute_s: float
    """Part of that without waiting for memory, s."""
    bound: Bound
    """What keeps it from being faster."""
    gb_s: list[float]
    """Bytes read and written in its time, GB/s, by memory, in the machine's order."""


class TierUseDoc(TypedDict):
    """What one memory does under a placement."""

    memory: str
    """Memory."""
    placed_bytes: float
    """Bytes placed there."""
    read_bytes: float
    """Bytes read from it."""
    write_bytes: float
    """Bytes written to it."""
    gb_s: float
    """Bytes read and written over the run time, GB/s."""
    utilisation: float
    """The same over the peak at that read fraction: the share of the run time that they take at least."""
    idle_ns: float
    """Latency at rest, ns."""
    loaded_ns: float
    """Latency under this load, in the time in which the memory is in use, ns."""


class ObjectUseDoc(TypedDict):
    """What one object costs under a placement."""

    object: str
    """Object."""
    stall_s: float
    """Time a thread waits for it, s."""
    share: float
    """Its share of the run time."""


class PredictionDoc(TypedDict):
    """How long a program takes under a placement."""

    time_s: float
    """Run time, s."""
    low_s: float
    """Lower end of the range, s."""
    high_s: float
    """Upper end of the range, s."""
    compute_s: float
    """Part of the time without waiting for memory, s."""
    stall_s: float
    """Part of the time spent waiting for memory, s."""
    bound: Bound
    """What keeps it from being faster, over the whole run."""
    phases: NotRequired[list[PhasePredictionDoc]]
    """By phase, in the profile's order; their times add up to the run's. Absent in answers of before."""
    tiers: list[TierUseDoc]
    """By memory, in the machine's order."""
    objects: list[ObjectUseDoc]
    """By object, in the profile's order."""
    assumptions: list[str]
    """What was taken for granted, for the reader."""


class PolicyDoc(TypedDict):
    """What one policy brings."""

    policy: str
    """Name as on the command line."""
    about: str
    """What it does, in one line."""
    fast_bytes: float
    """Bytes of fast memory that it takes."""
    fractions: list[list[float]]
    """By object, fractions by memory; empty when it cannot be used."""
    actions: list[Action]
    """By object, what to ask of the kernel; empty when it cannot be used."""
    prediction: NotRequired[PredictionDoc]
    refused: NotRequired[str]


class FrontierDoc(TypedDict):
    """One point of the trade between fast memory and time."""

    fast_bytes: float
    """Fast memory used, bytes."""
    time_s: float
    """Least run time with that much, s."""
    slowdown: float
    """Run time over the least that was found with any amount of fast memory, which is the last point's."""
    fast_shares: NotRequired[list[float]]
    """Share of each object that is in fast memory then, to four decimals, in the profile's order. Absent in answers of
    before.
    """


class ComparisonDoc(TypedDict):
    """Every policy on one profile and machine, and what was chosen."""

    machine: str
    """Machine."""
    profile: str
    """Profile."""
    socket: str
    """Socket where the threads run."""
    threads: int
    """Threads."""
    anchor: NotRequired[AnchorDoc]
    """How predictions stand to the run that the profile was made from; absent where they are not anchored to it."""
    fast_memory: str
    """Fast memory is this one."""
    budget_bytes: int
    """Fast memory that could be used, bytes."""
    policies: list[PolicyDoc]
    """Policies in the order they were tried."""
    chosen: str
    """Name of the policy that was chosen."""
    unselected: NotRequired[list[str]]
    """Objects that no rule of a plan can select, by name: small ones, and pages of files. They are where the thread
    that touches them first is told to put memory, under every policy.
    """
    frontier: list[FrontierDoc]
    """Least time by amount of fast memory, growing in memory, falling in time."""
