"""Tables of data that does not fit: published cases, fitted models, purchases, clusters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tierloom.columns import Column, told
from tierloom.forms import written
from tierloom.report.table_layout.table import OURS, Table, facts
from tierloom.units import bytes_text, count_text, percent_text, seconds_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tierloom.capacity import Fit, Fleet, Layer, Mix, Rates, Run, Saving, Shape
    from tierloom.capacity.catalog import Case
    from tierloom.capacity.findings import Finding
    from tierloom.capacity.fit import Point
    from tierloom.capacity.keyvalue import Served
    from tierloom.capacity.mixes import Hits
    from tierloom.columns import Row

STYLES = {"fitted": "cyan", "input": "cyan", "missed": "yellow", "conflict": "magenta"}
SHOWN = 24
"""Purchases that the table lists."""


def cases(known: Sequence[Case]) -> Table:
    """The published cases."""
    columns = [Column("name", "case"), Column("title", "what was run")]
    return Table(columns, [{"name": case.name, "title": case.title} for case in known], "Published cases")


def measured(runs: Mapping[str, Sequence[Run]]) -> Table:
    """The measured runs of the catalog."""
    columns = [
        *(Column("name", "runs"), Column("number", "number", "count")),
        *(Column("least_bytes", "memory", "bytes", to="most_bytes"), Column("streams", "streams")),
    ]
    return Table(columns, [_runs_row(name, known) for name, known in runs.items()], "Measured runs")


def _runs_row(name: str, runs: Sequence[Run]) -> Row:
    sizes, streams = [run.memory_bytes for run in runs], sorted({run.streams for run in runs})
    ends = {"least_bytes": min(sizes), "most_bytes": max(sizes)}
    return {"name": name, "number": len(runs), **ends, "streams": ", ".join(map(str, streams))}


def inputs(case: Case) -> Table:
    """What went into a published case: none of it is a result."""
    rows = [
        {**each, "input": name, "value": {"value": _point(each), "kind": each["kind"]}}
        for name, figure in case.inputs.items()
        for each in (figure if isinstance(figure, list) else [figure])
    ]
    note = " ".join(f"{name}: {text}." for name, text in case.sources.items())
    return Table(INPUTS, rows, f"{case.name}: {case.title}", note, has_legend=True)


INPUTS = (
    *(Column("input", "input"), Column("value", "value", rank="key"), Column("source", "source", rank="key")),
    Column("how", "how"),
)


def _point(figure: Mapping[str, Any]) -> str:
    """A figure's value, or the parts of a point of a curve."""
    if "value" in figure:
        return str(figure["value"])
    return ", ".join(f"{name} {value}" for name, value in figure.items() if name not in {"kind", "source", "how"})


def findings(case: Case, found: Sequence[Finding]) -> Table:
    """Published figures beside ours."""
    good = sum(each.verdict == "reproduced" for each in found)
    rows = [
        {**vars(each), "apart": each.ours / each.published - 1.0, "style": STYLES.get(each.verdict, "")}
        for each in found
    ]
    return Table(FINDINGS, rows, f"{case.name}: published and ours", f"{good} of {len(found)} reproduced.")


FINDINGS = (
    *(Column("name", "finding"), Column("published", "published", "digits", "key")),
    *(Column("ours", "ours", "digits", "key"), Column("apart", "apart", "gain")),
    *(Column("verdict", "verdict", rank="key"), Column("note", "why")),
)


def fitted(fit: Fit, name: str, *, held_out: bool) -> Table:
    """The model of some runs and its errors."""
    unseen_text = "unseen: by a model fitted without that memory. " if not held_out and _tested(fit) else ""
    return Table(
        POINTS,
        [_point_row(point, fit) for point in fit.points],
        f"{name}: {'predicted without having been seen' if held_out else 'measured and by the model'}",
        f"{unseen_text}Largest error on memory {'not seen' if _tested(fit) else 'that the fit has seen'}: "
        f"{percent_text(fit.spread)}; {_repeats(fit.scatter)}.\n{law(fit)}",
    )


def _repeats(scatter: float | None) -> str:
    if scatter is None:
        return "no run was repeated, so how far they scatter is not known"
    return f"repeats scatter by {percent_text(scatter)}"


POINTS = (
    *(Column("memory_bytes", "memory", "bytes"), Column("streams", "streams", "count")),
    *(Column("seconds", "measured", "seconds"), Column("model_s", "model", "seconds")),
    *(Column("error", "error", "gain"), Column("unseen_error", "unseen", "gain")),
    *(Column("storage_bytes", "storage", "bytes"), Column("stall", "waiting for it", "percent")),
)


def _point_row(point: Point, fit: Fit) -> Row:
    figures = {column.key: getattr(point, column.key) for column in POINTS[:-2]}
    stall = fit.spill.stall(point.memory_bytes, point.streams)
    return told({**figures, "storage_bytes": point.storage_bytes or None, "stall": stall})


def _tested(fit: Fit) -> bool:
    """Whether the fit's errors are of memory that it had not seen: three amounts leave none to hold out."""
    return any(point.unseen_s is not None for point in fit.points)


def law(fit: Fit) -> str:
    """The fitted law in words."""
    spill = fit.spill
    counts = {point.streams for point in fit.points}
    least = min(counts)
    whole = spill.working_set_bytes * least**spill.sharing
    law_text = f"Exponent of the spilling curve: {spill.exponent:.2f} (1 is a hyperbola, -1 a straight line)"
    if whole < float("inf"):
        law_text += f"; nothing spills from {bytes_text(whole)} on with {least} stream{'s' if least > 1 else ''}"
    if len(counts) > 1:
        law_text += (
            f"; memory needed grows with streams to the power {spill.sharing:.1f}; "
            f"one stream uses {percent_text(spill.alone)} of the machine"
        )
    return f"{law_text}."


def purchases(made: Sequence[Mix], chosen: Mix, fit: Fit, streams: int) -> Table:
    """Purchases, cheapest first."""
    more = f" {len(made) - SHOWN} more are not shown." if len(made) > SHOWN else ""
    doubt = "" if _tested(fit) else ", as far as runs tell that the fit has seen"
    return Table(
        PURCHASES,
        [_purchase_row(each, is_chosen=each == chosen) for each in made[:SHOWN]],
        f"What memory brings: {count_text(streams, 'stream')} at once",
        f"Times are good to {percent_text(fit.spread)}{doubt}.{more}",
    )


PURCHASES = (
    *(Column("dram_bytes", "DRAM", "bytes"), Column("cxl_bytes", "CXL", "bytes"), Column("usd", "price", "price")),
    *(Column("seconds", "time", "seconds"), Column("results_h", "results/h", "digits")),
    *(Column("usd_per_result_h", "USD a result/h", "significant"), Column("on_cxl", "on CXL", "percent")),
    Column("chosen", "", rank="key"),
)


def _purchase_row(mix: Mix, *, is_chosen: bool) -> Row:
    figures = {column.key: getattr(mix, column.key) for column in PURCHASES[:-1]}
    without = {} if mix.cxl_bytes else {"cxl_bytes": None, "on_cxl": ""}
    return {**figures, **without, "chosen": "chosen" if is_chosen else "", "style": OURS if is_chosen else ""}


def hits(cost: Hits, machine: str) -> str:
    """What CXL memory costs where it is hit, as a sentence."""
    where = "hottest data in DRAM" if cost.use == "tiered" else "all data spread evenly"
    return (
        f"assumed: {percent_text(cost.waiting)} of computing waits for memory, {cost.latency_ratio:.2f} times as long "
        f"where that is CXL ({machine}); {where}; accesses by Zipf {cost.theta:g}"
    )


def served(found: Sequence[Served], machine: str) -> Table:
    """Configurations of a key-value store."""
    rows = [
        {
            "name": each.name,
            "operations_s": each.operations_s,
            "bound": each.bound,
            "share": each.operations_s / found[0].operations_s,
            **{key: part for key, part in (("on_cxl", each.on_cxl), ("on_ssd", each.on_ssd)) if part},
        }
        for each in found
    ]
    note = "on CXL, on SSD: share of the accesses. Operations are assumed; ratios and order rest on them less."
    return Table(SERVED, rows, f"A key-value store on {machine}", note)


SERVED = (
    *(Column("name", "configuration"), Column("operations_s", "operations/s", "count")),
    *(Column("share", "of DRAM's", "percent_tenths"), Column("on_cxl", "on CXL", "percent")),
    *(Column("on_ssd", "on SSD", "percent"), Column("bound", "bound")),
)


def saved(rates: Rates, answer: Saving, even: float) -> Table:
    """The abstract cost model's answer."""
    shares = {"servers, of those without": answer.servers, "total cost saved": answer.saving}
    told = {name: written(share, "percent_hundredths") for name, share in shares.items()}
    note = (
        "Holds while the working set exceeds the memory of either cluster. "
        f"SSD is rate 1, DRAM {rates.dram:g}, CXL {rates.cxl:g}."
    )
    even_from = {"saves nothing from a server cost of": f"{even:.3f}x"}
    return facts("The same throughput with CXL memory", told | even_from, note)


def cluster(layers: Sequence[Layer], answer: Fleet, data_bytes: float) -> Table:
    """The cheapest cluster."""
    columns = [
        *(Column("tier", "tier"), Column("held_bytes", "all servers", "bytes"), Column("each_bytes", "each", "bytes")),
        Column("share", "of the data", "percent"),
    ]
    rows = [
        {"tier": name, "held_bytes": held, "each_bytes": held / answer.servers, "share": held / data_bytes}
        for name, held in ((layer.name, answer.bytes[layer.name]) for layer in layers)
    ]
    title = f"Cheapest cluster: {answer.servers} servers, {answer.usd:,.0f} USD"
    return Table(columns, rows, title, f"Touches as much data as it holds in {seconds_text(answer.seconds)}.")


def instances(answer: Shape, each_bytes: float) -> Table:
    """What a host sells."""
    fed = written(answer.sold / answer.vcpus, "percent_tenths")
    told = {
        "vCPUs that DRAM can feed": f"{answer.sold} ({fed})",
        "CXL memory for the rest": bytes_text(answer.missing_bytes),
        "revenue gained": written(answer.revenue, "percent_hundredths"),
    }
    note = "Instances on CXL memory are sold at the discount; hosts are otherwise full."
    return facts(f"{answer.vcpus} vCPUs with {bytes_text(each_bytes)} each", told, note)
