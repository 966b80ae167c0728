"""Tables of data that does not fit: published cases, fitted models, purchases, clusters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tierloom.report.tables.layout import noted, table
from tierloom.report.tables.marks import LEGEND, marked
from tierloom.units import bytes_text, percent_text, seconds_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tierloom.capacity import Fit, Fleet, Layer, Mix, Rates, Run, Saving, Shape
    from tierloom.capacity.catalog import Case
    from tierloom.capacity.findings import Finding
    from tierloom.capacity.keyvalue import Served
    from tierloom.capacity.mixes import Hits
    from tierloom.report.tables.layout import Table

STYLES = {"reproduced": "green", "fitted": "cyan", "input": "cyan", "missed": "yellow", "conflict": "magenta"}
SHOWN = 24
"""Purchases that the table lists."""


def cases(known: Sequence[Case]) -> Table:
    """The published cases."""
    made = table("Published cases", ("case", "left"), ("what was run", "left"))
    for case in known:
        made.add_row(case.name, case.title)
    return made


def measured(runs: Mapping[str, Sequence[Run]]) -> Table:
    """The measured runs of the catalog."""
    made = table("Measured runs", ("runs", "left"), ("number", "right"), ("memory", "left"), ("streams", "left"))
    for name, known in runs.items():
        sizes, streams = [run.memory_bytes for run in known], sorted({run.streams for run in known})
        span = f"{bytes_text(min(sizes))} to {bytes_text(max(sizes))}"
        made.add_row(name, str(len(known)), span, ", ".join(map(str, streams)))
    return made


def inputs(case: Case) -> Table:
    """What went into a published case: none of it is a result."""
    made = table(
        f"{case.name}: {case.title}",
        ("input", "left"),
        ("value", "left", "key"),
        ("source", "left", "key"),
        ("how", "left"),
    )
    for name, figure in case.inputs.items():
        for each in figure if isinstance(figure, list) else [figure]:
            value = _point(each) if isinstance(figure, list) else str(each["value"])
            made.add_row(name, marked(value, each["kind"]), each["source"], each.get("how", ""))
    return noted(made, LEGEND + " " + " ".join(f"{name}: {text}." for name, text in case.sources.items()))


def _point(figure: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in figure.items() if name not in {"kind", "source", "how"})


def findings(case: Case, found: Sequence[Finding]) -> Table:
    """Published figures beside ours."""
    made = table(
        f"{case.name}: published and ours",
        ("finding", "left"),
        ("published", "right", "key"),
        ("ours", "right", "key"),
        ("apart", "right"),
        ("verdict", "left", "key"),
        ("why", "left"),
    )
    for each in found:
        apart = f"{(each.ours / each.published - 1.0) * 100:+.1f} %"
        made.add_row(
            each.name,
            f"{each.published:.4g}",
            f"{each.ours:.4g}",
            apart,
            each.verdict,
            each.note,
            style=STYLES[each.verdict] if each.verdict != "reproduced" else None,
        )
    good = sum(each.verdict == "reproduced" for each in found)
    return noted(made, f"{good} of {len(found)} reproduced.")


def fitted(fit: Fit, name: str, *, held_out: bool) -> Table:
    """The model of some runs and its errors."""
    made = table(
        f"{name}: {'predicted without having been seen' if held_out else 'measured and by the model'}",
        ("memory", "right"),
        ("streams", "right"),
        ("measured", "right"),
        ("model", "right"),
        ("error", "right"),
        ("unseen", "right"),
        ("storage", "right"),
        ("waiting for it", "right"),
    )
    for point in fit.points:
        unseen = point.unseen_error
        made.add_row(
            bytes_text(point.memory_bytes),
            str(point.streams),
            seconds_text(point.seconds),
            seconds_text(point.model_s),
            f"{point.error * 100:+.1f} %",
            "" if unseen is None else f"{unseen * 100:+.1f} %",
            bytes_text(point.storage_bytes) if point.storage_bytes else "",
            percent_text(fit.spill.stall(point.memory_bytes, point.streams)),
        )
    unseen_text = "unseen: by a model fitted without that memory. " if not held_out and _tested(fit) else ""
    return noted(
        made,
        f"{unseen_text}Largest error on memory {'not seen' if _tested(fit) else 'that the fit has seen'}: "
        f"{percent_text(fit.spread)}; repeats scatter by {percent_text(fit.scatter)}.\n{law(fit)}",
    )


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
    rows = table(
        f"What memory brings: {streams} stream{'s' if streams > 1 else ''} at once",
        ("DRAM", "right"),
        ("CXL", "right"),
        ("price", "right"),
        ("time", "right"),
        ("results/h", "right"),
        ("USD a result/h", "right"),
        ("on CXL", "right"),
        ("", "left", "key"),
    )
    for each in made[:SHOWN]:
        rows.add_row(
            bytes_text(each.dram_bytes),
            bytes_text(each.cxl_bytes) if each.cxl_bytes else "-",
            f"{each.usd:.2f}" if each.usd < 100 else f"{each.usd:.0f}",
            seconds_text(each.seconds),
            f"{each.results_h:.4g}",
            f"{each.usd_per_result_h:.3g}",
            percent_text(each.on_cxl) if each.cxl_bytes else "",
            "chosen" if each == chosen else "",
            style="bold green" if each == chosen else None,
        )
    more = f" {len(made) - SHOWN} more are not shown." if len(made) > SHOWN else ""
    doubt = "" if _tested(fit) else ", as far as runs tell that the fit has seen"
    return noted(rows, f"Times are good to {percent_text(fit.spread)}{doubt}.{more}")


def hits(cost: Hits, machine: str) -> str:
    """What CXL memory costs where it is hit, as a sentence."""
    where = "hottest data in DRAM" if cost.use == "tiered" else "all data spread evenly"
    return (
        f"assumed: {percent_text(cost.waiting)} of computing waits for memory, {cost.latency_ratio:.2f} times as long "
        f"where that is CXL ({machine}); {where}; accesses by Zipf {cost.theta:g}"
    )


def served(found: Sequence[Served], machine: str) -> Table:
    """Configurations of a key-value store."""
    made = table(
        f"A key-value store on {machine}",
        ("configuration", "left"),
        ("operations/s", "right"),
        ("of DRAM's", "right"),
        ("on CXL", "right"),
        ("on SSD", "right"),
        ("bound", "left"),
    )
    for each in found:
        share = f"{each.operations_s / found[0].operations_s:.1%}"
        cells = [percent_text(part) if part else "" for part in (each.on_cxl, each.on_ssd)]
        made.add_row(each.name, f"{each.operations_s:,.0f}", share, *cells, each.bound)
    return noted(
        made, "on CXL, on SSD: share of the accesses. Operations are assumed; ratios and order rest on them less."
    )


def saved(rates: Rates, answer: Saving, even: float) -> Table:
    """The abstract cost model's answer."""
    made = table("The same throughput with CXL memory", ("", "left"), ("", "right"))
    made.add_row("servers, of those without", f"{answer.servers:.2%}")
    made.add_row("total cost saved", f"{answer.saving:.2%}")
    made.add_row("saves nothing from a server cost of", f"{even:.3f}x")
    given = f"SSD is rate 1, DRAM {rates.dram:g}, CXL {rates.cxl:g}."
    return noted(made, f"Holds while the working set exceeds the memory of either cluster. {given}")


def cluster(layers: Sequence[Layer], answer: Fleet, data_bytes: float) -> Table:
    """The cheapest cluster."""
    made = table(
        f"Cheapest cluster: {answer.servers} servers, {answer.usd:,.0f} USD",
        ("tier", "left"),
        ("all servers", "right"),
        ("each", "right"),
        ("of the data", "right"),
    )
    for layer in layers:
        held = answer.bytes[layer.name]
        made.add_row(layer.name, bytes_text(held), bytes_text(held / answer.servers), percent_text(held / data_bytes))
    return noted(made, f"Touches as much data as it holds in {seconds_text(answer.seconds)}.")


def instances(answer: Shape, each_bytes: float) -> Table:
    """What a host sells."""
    made = table(f"{answer.vcpus} vCPUs with {bytes_text(each_bytes)} each", ("", "left"), ("", "right"))
    made.add_row("vCPUs that DRAM can feed", f"{answer.sold} ({answer.sold / answer.vcpus:.1%})")
    made.add_row("CXL memory for the rest", bytes_text(answer.missing_bytes))
    made.add_row("revenue gained", f"{answer.revenue:.2%}")
    return noted(made, "Instances on CXL memory are sold at the discount; hosts are otherwise full.")
