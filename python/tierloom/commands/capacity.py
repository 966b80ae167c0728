"""``tierloom capacity``: data that does not fit, what more memory does for it, and what that costs."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tierloom.arguments import name_list
from tierloom.commands import options, say
from tierloom.commands.capacity_cost import cost, fleet, shape
from tierloom.commands.capacity_measure import measure
from tierloom.commands.function_options import of
from tierloom.commands.groups import Group
from tierloom.errors import RequestError
from tierloom.units import amount_in_bytes, bytes_text, fraction

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tierloom.capacity import Fit, Mix
    from tierloom.capacity.mixes import Hits, Use
    from tierloom.offload.host import Tier

RUNS = click.argument("runs", metavar="RUNS")
LOAD = "capacity.keyvalue:Load"


@click.group(
    name="capacity",
    cls=Group,
    epilog=options.examples("tierloom capacity fit duckdb-tpch", "tierloom capacity published tpch-mssql"),
)
def verb() -> None:
    """Say what more memory does for a job that spills, and what it costs.

    RUNS is a CSV file with the columns memory and seconds, and where known streams, read_bytes and
    written_bytes: a few runs of the job with more and less memory. `capacity measure` writes one.
    """


verb.add_command(measure)
verb.add_command(cost)
verb.add_command(fleet)
verb.add_command(shape)


@verb.command(name="list", epilog=options.examples("tierloom capacity list", "tierloom capacity list --json"))
@options.as_json
def list_(as_json: bool) -> None:
    """List the published cases and the measured runs of the catalog."""
    from tierloom.capacity import catalog
    from tierloom.report.tables import capacities

    cases = [catalog.load(name) for name in catalog.names()]
    measured = {name: catalog.load_runs(name) for name in catalog.run_names()}
    if as_json:
        listed = [{"name": case.name, "title": case.title, "sources": case.sources} for case in cases]
        say.document("published-cases", {"cases": listed, "runs": {name: len(runs) for name, runs in measured.items()}})
        return
    say.show(capacities.cases(cases), capacities.measured(measured))


@verb.command(
    name="published",
    epilog=options.examples("tierloom capacity published tpch-mssql", "tierloom capacity published keydb --json"),
)
@click.argument("names", nargs=-1, metavar="[CASE]…")
@options.as_json
def published_(names: tuple[str, ...], as_json: bool) -> None:
    """Hold published cases against ours: inputs, predictions, and what is missed and why.

    All cases of `tierloom capacity list` by default. No figure's own published value goes into ours unless
    the verdict says fitted.
    """
    from tierloom.capacity import catalog, findings
    from tierloom.report.tables import capacities

    cases = [catalog.load(name) for name in names or catalog.names()]
    with say.progress("computing"):
        found = {case.name: findings(case.name) for case in cases}
    if as_json:
        say.document(
            "published-findings",
            {
                "cases": {
                    case.name: {
                        "inputs": case.inputs,
                        "sources": case.sources,
                        "findings": [asdict(each) for each in found[case.name]],
                    }
                    for case in cases
                }
            },
        )
        return
    say.show(
        *(part for case in cases for part in (capacities.inputs(case), capacities.findings(case, found[case.name])))
    )


@verb.command(
    name="fit",
    epilog=options.examples(
        "tierloom capacity fit duckdb-tpch --hold-out 256MiB,512MiB",
        "tierloom capacity fit duckdb-tpch --json",
    ),
)
@RUNS
@click.option("--hold-out", metavar="A,B", help="Fit without these amounts of memory and predict them.")
@options.plot("the runs and the model")
@options.as_json
def fit_(runs: str, hold_out: str | None, plot: Path | None, as_json: bool) -> None:
    """Fit the model of a job that spills to a few runs, with its errors.

    Time is computing and, below the working set, spilling that falls as a power of memory. Every amount
    of memory is also predicted by a model that has not seen it: that error is what to trust.
    """
    from tierloom import capacity
    from tierloom.report.tables import capacities

    known = capacity.load_runs(runs)
    sizes = [amount_in_bytes(text, 0) for text in name_list(hold_out) or []]
    with say.progress("fitting"):
        fitted = capacity.held_out(known, sizes) if sizes else capacity.fit(known)
    answer = {"runs": runs, "held_out_bytes": sizes, **described(fitted)}
    if plot:
        from tierloom.report import picture
        from tierloom.report.pages import capacity as page

        picture.save(page.picture_of_fit(answer), plot)
        say.wrote("time against memory", plot)
    if as_json:
        say.document("spill-fit", answer)
        return
    say.show(capacities.fitted(fitted, runs, held_out=bool(sizes)))


def described(fitted: Fit) -> dict[str, object]:
    """The fit as a document; an infinite working set is none."""
    spill = asdict(fitted.spill)
    if spill["working_set_bytes"] == float("inf"):
        spill["working_set_bytes"] = None
    points = [{**asdict(point), "error": point.error, "unseen_error": point.unseen_error} for point in fitted.points]
    return {"model": spill, "points": points, "spread": fitted.spread, "scatter": fitted.scatter}


def memories(function: Callable[..., None]) -> Callable[..., None]:
    """Options that say what an access to CXL memory costs."""
    for option in (
        click.option("--theta", type=float, default=0.99, show_default=True, help="Zipf's exponent; 0 is even."),
        click.option(
            "--traffic",
            type=float,
            default=0.0,
            metavar="GB/S",
            help="Memory traffic of the job; idle latency by default.",
        ),
        click.option(
            "--waiting", default="20%", show_default=True, metavar="SHARE", help="Computing time that waits for DRAM."
        ),
        click.option(
            "--use",
            type=click.Choice(["tiered", "interleaved"]),
            default="tiered",
            show_default=True,
            help="Hot data in DRAM, or all spread evenly.",
        ),
        click.option(
            "--machine",
            "-m",
            default="micron-bergamo-cz120",
            show_default=True,
            metavar="M",
            help="Machine whose memories are meant.",
        ),
    ):
        function = option(function)
    return function


@verb.command(
    name="plan",
    epilog=options.examples(
        "tierloom capacity plan duckdb-tpch --dram 256MiB,512MiB,1GiB --cxl 0B,512MiB --dram-price 4 --cxl-price 2.5",
        "tierloom capacity plan duckdb-tpch --dram 256MiB,1GiB --cxl 0B,1GiB --results 150 --json",
    ),
)
@RUNS
@click.option("--dram", required=True, metavar="A,B", help="Amounts of DRAM that can be bought.")
@click.option("--cxl", default="0B", show_default=True, metavar="A,B", help="Amounts of CXL memory.")
@click.option("--streams", type=click.IntRange(min=1), help="Streams at once; those of the runs by default.")
@click.option("--results", type=float, metavar="N", help="Cheapest purchase that finishes N streams an hour.")
@click.option("--budget", type=float, metavar="USD", help="Fastest purchase for at most this.")
@click.option(
    "--dram-price", type=float, default=4.0, show_default=True, metavar="USD", help="A GiB of DRAM (assumed)."
)
@click.option(
    "--cxl-price", type=float, default=3.0, show_default=True, metavar="USD", help="A GiB of CXL memory (assumed)."
)
@click.option("--server", type=float, default=0.0, show_default=True, metavar="USD", help="The server without memory.")
@memories
@options.plot("cost against results")
@options.as_json
def plan_(
    runs: str,
    dram: str,
    cxl: str,
    streams: int | None,
    results: float | None,
    budget: float | None,
    dram_price: float,
    cxl_price: float,
    server: float,
    machine: str,
    use: Use,
    waiting: str,
    traffic: float,
    theta: float,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Choose DRAM and CXL memory for a job by what they bring and cost.

    Chooses the purchase with the least cost for each result; with --results the cheapest that brings so
    many, with --budget the fastest for the money.
    """
    from tierloom import capacity

    if results is not None and budget is not None:
        message = "--results and --budget are two goals\nhint: give one of them"
        raise RequestError(message)
    known = capacity.load_runs(runs)
    fitted = capacity.fit(known)
    prices = capacity.Prices(dram=dram_price, cxl=cxl_price, server=server)
    hits = hit_costs(machine, use, fraction(waiting), traffic, theta)
    sizes = [[float(amount_in_bytes(text, 0)) for text in name_list(texts) or []] for texts in (dram, cxl)]
    at_once = streams or max(run.streams for run in known)
    made = capacity.mixes(fitted.spill, sizes[0], sizes[1], at_once, hits, prices)
    chosen = capacity.choose(made, results_h=results, usd=budget)
    answer = planned(fitted, made, chosen, hits, at_once)
    if plot:
        from tierloom.report import picture
        from tierloom.report.pages import capacity as page

        picture.save(page.picture_of_purchases(answer, runs), plot)
        say.wrote("cost against results", plot)
    if as_json:
        say.document("purchases", answer)
        return
    from tierloom.report.tables import capacities

    say.show(capacities.purchases(made, chosen, fitted, at_once))
    say.show(capacities.hits(hits, machine))
    least = min(run.memory_bytes for run in known)
    if guessed := sum(each.dram_bytes + each.cxl_bytes < least for each in made):
        say.warn(
            f"{guessed} of {len(made)} purchases hold less memory than any run had ({bytes_text(least)}), so their "
            "times are a guess; run the job with so little"
        )


@verb.command(
    name="store",
    epilog=options.examples(
        "tierloom capacity store --machine bytedance-spr-a1000",
        "tierloom capacity store --machine liu-a --record 256 --theta 0.8 --fast 25% --json",
    ),
)
@options.machine
@of(LOAD, threads="N")
@click.option(
    "--compute",
    type=float,
    default=5.0,
    show_default=True,
    metavar="US",
    help="Computing of an operation, microseconds.",
)
@of(LOAD, waits="N", record_bytes="--record BYTES", theta="")
@click.option("--fast", default="50%", show_default=True, metavar="SHARE", help="Data that DRAM holds under promotion.")
@click.option("--on-ssd", default="20%,40%", show_default=True, metavar="A,B", help="Parts of the data on SSD.")
@options.as_json
def store_(machine: str, compute: float, fast: str, on_ssd: str, as_json: bool, **asked: Any) -> None:  # noqa: ANN401 (as `Load` has them)
    """Compare ways to place a key-value store: DRAM, CXL memory, interleaved, promoted, or partly on SSD.

    Operations a second follow from the machine's loaded-latency curves and the skew of accesses; the
    rates that `capacity cost` asks for come out too. The operation itself is assumed unless you say more.
    """
    from tierloom.capacity.keyvalue import Load, configurations
    from tierloom.nouns import Machine
    from tierloom.report.tables import capacities

    load = Load(
        **asked,
        compute_s=compute * 1e-6,
        fast_share=fraction(fast),
        on_ssd=tuple(fraction(text) for text in name_list(on_ssd) or []),
    )
    tiers = two_tiers(machine)
    if load.threads > (cores := Machine.load(machine).data["sockets"][0]["cores"]["value"]):
        message = (
            f"{load.threads} threads do not fit on the first socket of {machine}, which has {cores} cores\n"
            f"hint: ask for {cores} threads or fewer"
        )
        raise RequestError(message)
    served = configurations(load, *tiers)
    if as_json:
        say.document("store", {**asdict(load), "configurations": [asdict(each) for each in served]})
        return
    say.show(capacities.served(served, machine))
    rates = {each.name: each.operations_s for each in served}
    ratios = [rates[name] / rates["ssd"] for name in ("mmem", "cxl")]
    say.then(f"tierloom capacity cost --dram {ratios[0]:.1f} --cxl {ratios[1]:.1f} --dram-to-cxl 2")


def two_tiers(machine: str) -> tuple[Tier, Tier]:
    """The nearest DRAM and CXL memory of a machine.

    Raises:
        RequestError: It lacks one of them.
    """
    from tierloom.nouns import Machine
    from tierloom.offload.host import host_of

    tiers = {tier.kind: tier for tier in reversed(host_of(Machine.load(machine)).memories)}
    if "dram" not in tiers or "cxl" not in tiers:
        message = f"{machine} has no DRAM beside CXL memory\nhint: see `tierloom machine list`"
        raise RequestError(message)
    return tiers["dram"], tiers["cxl"]


def hit_costs(machine: str, use: Use, waiting: float, traffic_gb_s: float, theta: float) -> Hits:
    """What an access to the machine's CXL memory costs."""
    from tierloom.capacity.mixes import Hits, latency_ratio

    ratio = latency_ratio(*two_tiers(machine), 0.5, traffic_gb_s * 1e9)
    return Hits(use=use, latency_ratio=ratio, waiting=waiting, theta=theta)


def planned(fitted: Fit, made: list[Mix], chosen: Mix, hits: Hits, streams: int) -> Mapping[str, object]:
    """The plan as a document."""
    return {
        "streams": streams,
        "chosen": asdict(chosen),
        "purchases": [asdict(each) for each in made],
        "hits": asdict(hits),
        **described(fitted),
    }
