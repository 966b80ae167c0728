"""``tierloom simulate``: let the kernel, or a policy of the literature, move a program's pages."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from tierloom import catalog, progress_bar
from tierloom.arguments import name_list
from tierloom.commands import next_command, options, say
from tierloom.commands.function_options import of
from tierloom.errors import RequestError
from tierloom.nouns import Machine, Plan, Profile, Workload
from tierloom.nouns.workload import PATTERNS

if TYPE_CHECKING:
    from tierloom.migration_simulator import Simulation
    from tierloom.schema import CostsDoc, Figure

SIMULATE = "migration_simulator:simulate"
DEFAULT_POLICIES = "none,autonuma,tiering,tpp,tierloom"

PLANNED = ("machine", "threads", "ran_on", "socket", "nodes", "fast_memory")
"""Options that `plan` has, too."""


@click.command(
    name="simulate",
    epilog=options.examples(
        "tierloom simulate --workload silo --machine bytedance-spr-a1000 --nodes ldram,cxl --fast-memory 50%",
        "tierloom simulate xsbench-xl -m liu-a --nodes ldram,cxl --fast-memory 64GiB --policy tiering --plot xs.png",
    ),
)
@click.argument("profile", metavar="[PROFILE]", required=False)
@click.option("--workload", "-w", metavar="W", help=f"A workload instead: a name, a file, or {', '.join(PATTERNS)}.")
@click.option("--trace", type=options.FILE, metavar="FILE", help="An access trace instead: .npy or .parquet.")
@of(SIMULATE, samples="")
@options.machine
@click.option(
    "--policy",
    "-p",
    "policies",
    metavar="A,B",
    default=DEFAULT_POLICIES,
    show_default=True,
    help="Policies to run; `all` for all of ours, FILE.py:CLASS for one of your own.",
)
@of(SIMULATE, placement="P")
@click.option("--plan", type=options.FILE, metavar="FILE", help="A plan instead of a placement.")
@options.threads
@options.ran_on
@options.socket
@options.memories
@options.fast_memory
@click.option("--set", "knobs", multiple=True, metavar="KNOB=N", help="A knob of the policy, by the kernel's name.")
@of(SIMULATE, evaluator="", tiers="", lru="", seed=("N", {"type": click.IntRange(min=0)}))
@of("nouns.workload:Workload.synthetic", size="SIZE", seconds="S", gb_s="--gb-s GB/S", mlp="N")
@of("migration_simulator:simulate_trace", ns_per_access="NS")
@click.option("--calibrate", is_flag=True, help="Measure what faults, protection and copies cost here, and use that.")
@options.plot("the runs over time")
@options.as_json
def verb(**asked: Any) -> None:  # noqa: ANN401 (click hands options over by name)
    """Run a program's page accesses on a machine while a policy moves its pages.

    PROFILE is a folder that `tierloom profile` wrote, or a profile of the catalog.
    """
    runs = run_all(asked)
    if asked["plot"]:
        from tierloom.report import picture
        from tierloom.report.pages import simulation

        picture.save(simulation.picture(runs), asked["plot"])
    if asked["as_json"]:
        say.document("simulation", {"runs": [run.data for run in runs]})
    else:
        show(runs, has_samples=not asked["samples"] and has_samples(asked["profile"]))
    for warning in sorted({warning for run in runs for warning in run.data["warnings"]}):
        say.warn(warning)
    if asked["plot"]:
        say.wrote("runs over time", asked["plot"])
    if not asked["as_json"]:
        say.then(next_command.simulate(runs, asked["profile"], {name: asked[name] for name in PLANNED}))


def run_all(asked: dict[str, Any]) -> list[Simulation]:
    """One run a policy."""
    source = source_of(asked)
    refuse_idle(asked)
    machine = Machine.load(asked["machine"])
    given = {
        **{name: asked[name] for name in ("socket", "nodes", "tiers", "lru")},
        "placement": Plan.load(asked["plan"]) if asked["plan"] else asked["placement"],
        "fast_memory": fast_memory_of(source, asked["fast_memory"]),
        "knobs": knobs_of(asked["knobs"]),
        "costs": measured() if asked["calibrate"] else None,
    }
    chosen = policies_of(asked["policies"], followed=isinstance(source, Path) or asked["samples"])
    runs = []
    with say.progress_bar("simulating") as tell:
        steps = progress_bar.Steps(len(chosen), tell)
        for policy in chosen:
            steps.tell(f"simulating {policy}")
            runs.append(run_one(source, machine, policy, given, asked))
    return runs


def fast_memory_of(source: Workload | Profile | Path, amount: str | None) -> str | int | None:
    """The amount, in bytes where it is a share of a trace: one reading of it serves all policies."""
    from tierloom.migration_simulator import share_of_trace

    return share_of_trace(source, amount) if isinstance(source, Path) and amount else amount


def refuse_idle(asked: dict[str, Any]) -> None:
    """Options that speak of another kind of source than the one that runs.

    Raises:
        RequestError: One was given.
    """
    trace, pattern, named = asked["trace"], asked["workload"] in PATTERNS, asked["workload"] is not None
    if asked["plan"] and asked["placement"]:
        message = "--plan and --placement both say where pages are put at first\nhint: leave one of them out"
        raise RequestError(message)
    patterns = f"without --workload {'|'.join(PATTERNS)}"
    if not pattern:
        options.refuse_idle(["size", "seconds", "gb_s"], patterns)
    if not pattern and not trace:
        options.refuse_idle(["mlp"], f"{patterns} or --trace")
    if not trace:
        options.refuse_idle(["ns_per_access"], "without --trace")
    if trace:
        options.refuse_idle(["evaluator", "seed"], "beside --trace")
    if named or trace:
        options.refuse_idle(["ran_on"], "without PROFILE")
    if named and not pattern:
        options.refuse_idle(["threads"], f"beside --workload {asked['workload']}, which says how many it has")


def run_one(
    source: Workload | Profile | Path, machine: Machine, policy: str, given: dict[str, Any], asked: dict[str, Any]
) -> Simulation:
    """One policy on a workload, a profile or a trace."""
    from tierloom.migration_simulator import simulate, simulate_trace

    if isinstance(source, Path):
        pace = {name: asked[name] for name in ("mlp", "ns_per_access")}
        return simulate_trace(source, machine, policy, **given, **pace, threads=asked["threads"] or 1)
    own = ("threads", "ran_on") if isinstance(source, Profile) else ()
    ways = {name: asked[name] for name in ("evaluator", "seed", "samples", *own)}
    return simulate(source, machine, policy, **ways, **given)


def source_of(asked: dict[str, Any]) -> Workload | Profile | Path:
    """The one thing that is to be run.

    Raises:
        RequestError: There is none, or more than one.
    """
    profile, workload, trace = asked["profile"], asked["workload"], asked["trace"]
    given = sum(each is not None for each in (profile, workload, trace))
    if given != 1:
        found = "none of them is" if given == 0 else f"{given} are"
        message = (
            f"one of PROFILE, --workload and --trace has to be given, and {found}\nhint: write for example -w silo"
        )
        raise RequestError(message)
    if profile is not None:
        return Profile.load(profile)
    if asked["samples"]:
        message = "--samples: only a recorded profile has samples\nhint: name a folder that `tierloom profile` wrote"
        raise RequestError(message)
    if trace is not None:
        return Path(trace)
    if workload in PATTERNS:
        wide = {} if asked["threads"] is None else {"threads": asked["threads"]}
        return Workload.synthetic(workload, **wide, **{key: asked[key] for key in ("size", "seconds", "gb_s", "mlp")})
    return Workload.load(workload)


def policies_of(listed: str, *, followed: bool) -> list[str]:
    """Policies by name; ours has nothing to plan with where a trace or samples are followed access by access."""
    from tierloom.migration_simulator import OURS, terms

    every, asked = [*(name for name, _, _ in terms()["policies"]), OURS], name_list(listed) or []
    chosen = dict.fromkeys(name for each in asked for name in (every if each == "all" else [each]))
    left_out = followed and ("all" in asked or listed == DEFAULT_POLICIES)
    return [name for name in chosen if not (left_out and name == OURS)]


def knobs_of(listed: tuple[str, ...]) -> dict[str, float]:
    """``KNOB=N`` as numbers.

    Raises:
        RequestError: One is no number.
    """
    knobs = {}
    for item in listed:
        name, _, value = item.partition("=")
        try:
            knobs[name] = float(value)
        except ValueError:
            message = f"--set {item}: `{value}` is no number\nhint: write for example --set hot_threshold_ms=500"
            raise RequestError(message) from None
    return knobs


def measured() -> CostsDoc:
    """Costs of this machine, shown to the reader."""
    from tierloom.page_costs import calibrate

    with say.progress("measuring what faults and copies cost here"):
        found = calibrate()
    for name, figure in sorted(found.items()):
        cost = cast("Figure", figure)
        say.tell(f"{name}: {cost['value']:.0f} ns ({cost['kind']}: {cost.get('how', '')})")
    return found


def has_samples(profile: str | None) -> bool:
    """Whether a profile lies with samples in its folder."""
    folder = Profile.load(profile).folder if profile is not None else None
    return folder is not None and (folder / catalog.SAMPLES_FILE).is_file()


def show(runs: list[Simulation], *, has_samples: bool) -> None:
    """Tables of all runs, the fastest first, and of the memories under the fastest one that migrates."""
    from tierloom.report import verdicts
    from tierloom.report.tables import simulations

    by_time = sorted(runs, key=lambda run: run.time_s)
    say.show(
        verdicts.moved(runs),
        simulations.runs(runs),
        simulations.counters([run.data for run in by_time], has_samples=has_samples),
    )
    moved = [run for run in by_time if run.data["counters"]["pgmigrate_success"] > 0]
    say.show(simulations.nodes((moved or by_time)[0].data))
