"""The sections of language models: serving, training, caches of idle sessions, decoding on the CPU."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tierloom.columns import Column, Row
from tierloom.report.pages.parts import Chart, Fact, Notes, Picture, Section
from tierloom.report.pages.specs import (
    INK,
    OURS,
    SHARES,
    Spec,
    bars_height,
    chart,
    chosen_colour,
    field,
    labels,
    line_with_dots,
    memory_scale,
    names_axis,
    points,
    room,
    scale,
    stacked,
    tips,
)
from tierloom.report.table_layout.table import Table
from tierloom.report.tables.offloads import advice, policies, sessions
from tierloom.report.tables.offloads import ratios as ratio_table
from tierloom.units import GIB, bytes_text, count_text, percent_text, rate_text, seconds_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tierloom.offload.documents import CpuDoc, InferDoc, ServeDoc, TrainDoc
    from tierloom.report.pages.sources import Shelf, Source

HELD = {"weights_bytes": "weights", "kv_bytes": "KV cache", "hidden_bytes": "hidden", "buffer_bytes": "buffers"}


def inference(source: Source, shelf: Shelf) -> Section:  # noqa: ARG001 (a builder's signature)
    """The serving of a model: batch, placement, tokens per second."""
    data: InferDoc = source.data  # type: ignore[assignment] # recognised by its keys
    return Section(
        kind="language model",
        title=f"{data['model']} on {data['gpu']} and {data['machine']}",
        about=f"{data['answer']} {data['prompt']} tokens of prompt and {data['generate']} generated, "
        f"runtime {data['runtime']}, policy {data['policy']}.",
        facts=[
            Fact("tokens/s", f"{data['tokens_s']:.3g}", f"{data['low_tokens_s']:.3g} to {data['high_tokens_s']:.3g}"),
            Fact("batch", str(data["batch"]), f"as GPU batches of {data['gpu_batch']}"),
            Fact(
                "tokens/s each",
                rate_text(data["users"]["tokens_s_user"]),
                f"first token after {seconds_text(data['users']['ttft_s'])}",
            ),
            Fact("whole block", seconds_text(data["total_s"]), f"prefill {seconds_text(data['prefill_s'])}"),
            Fact("decode waits for", data["decode_bound"], f"prefill for {data['prefill_bound']}"),
        ],
        charts=[_rates(data), _held(data), *_pieces(data), _weights(data), *_capacities(data)],
        tables=advice(data),
        notes=[Notes("What this rests on", data["assumptions"])],
    )


def _rates(data: InferDoc) -> Chart:
    table, about = replace(policies(data), title=""), "Line: what the assumptions leave open."
    return Chart("Throughput by policy", _rate_spec(table.rows, "tokens/s"), table, about=about)


def _rate_spec(rows: Sequence[Row], title: str, name: str = "policy") -> dict[str, Any]:
    y = names_axis(name, [row[name] for row in rows])
    ends = [row.get("high") or row["tokens_s"] or 0.0 for row in rows]
    ranges = [
        {
            "mark": {"type": "rule", "strokeWidth": 1.5, "color": INK, "opacity": 0.75},
            "transform": [{"filter": "isValid(datum.low)"}],
            "encoding": {"y": y, "x": field("low"), "x2": {"field": "high"}},
        }
    ]
    return chart(
        {
            "mark": {"type": "bar", "height": {"band": 0.66}, "cornerRadiusEnd": 3},
            "transform": [{"filter": "isValid(datum.tokens_s)"}],
            "encoding": {
                "y": y,
                "x": field("tokens_s", title=title, scale=room(ends)),
                "color": chosen_colour(),
                "tooltip": tips((name, name), ("tokens_s", "tokens/s", ".4~g"), ("against", "plan faster by", ".1%")),
            },
        },
        *(ranges if any("low" in row for row in rows) else []),
        labels("isValid(datum.tokens_s) ? format(datum.tokens_s, '.3~g') : 'not possible'", x=field("end"), y=y),
        height=bars_height(len(rows)),
        transform=[{"calculate": "isValid(datum.high) ? datum.high : (datum.tokens_s || 0)", "as": "end"}],
    )


def _held(data: InferDoc) -> Chart:
    rows: list[Row] = [
        {
            "place": place["place"],
            "what": what,
            "rank": rank,
            "gib": place[key] / GIB,  # type: ignore[literal-required] # listed above
            "allowed": place["allowed_bytes"] / GIB,
            "capacity": place["capacity_bytes"],
        }
        for place in data["places"]
        for rank, (key, what) in enumerate(HELD.items())
    ]
    names = [place["place"] for place in data["places"]]
    colours = scale(HELD.values())
    tip = tips(("place", "place"), ("what", "holds"), ("gib", "GiB", ".3~f"), ("allowed", "may hold, GiB", ".3~f"))
    spec = chart(
        stacked("place", "gib", "what", colours, title="GiB", tooltip=tip, names=names),
        {
            "mark": {"type": "tick", "thickness": 2.5, "color": INK, "height": {"band": 0.8}},
            "encoding": {"y": names_axis("place", names), "x": field("allowed")},
        },
        height=max(len(names) * 34, 80),
    )
    columns = [
        *(Column("place", "place"), Column("what", "what"), Column("gib", "GiB", "gib")),
        *(Column("allowed", "may hold, GiB", "gib"), Column("capacity", "of", "bytes")),
    ]
    return Chart("What each place holds", spec, Table(columns, rows), about="Mark: what it may hold.")


def _pieces(data: InferDoc) -> list[Chart]:
    told = (
        ("Prefill: where the time goes", data["prefill_pieces_s"]),
        ("Decode step: where the time goes", data["decode_pieces_s"]),
    )
    return [_piece(title, pieces) for title, pieces in told if any(pieces.values())]


def _piece(title: str, pieces: dict[str, float]) -> Chart:
    rows: list[Row] = [
        {"piece": name, "seconds": value}
        for name, value in sorted(pieces.items(), key=lambda each: -each[1])
        if value > 0
    ]
    y = names_axis("piece", [row["piece"] for row in rows])
    spec = chart(
        {
            "mark": {"type": "bar", "color": "var(--c1)", "height": {"band": 0.66}, "cornerRadiusEnd": 3},
            "encoding": {
                "y": y,
                "x": field("seconds", title="s"),
                "tooltip": tips(("piece", "piece"), ("seconds", "s", ".4~g")),
            },
        },
        height=bars_height(len(rows)),
    )
    return Chart(title, spec, Table([Column("piece", "piece"), Column("seconds", "time", "seconds")], rows))


def _weights(data: InferDoc) -> Chart:
    names = [place["place"] for place in data["places"]]
    parts = [*data["weights_bytes"].items(), ("KV cache", data["kv_bytes"])]
    counted = data["whole_tensors"]["tensors"]
    rows: list[Row] = [
        {
            "part": part,
            "place": name,
            "rank": rank,
            "share": placed.get(name, 0.0) / max(sum(placed.values()), 1.0),
            "bytes": placed.get(name, 0.0),
            "tensors": counted.get("kv" if part == "KV cache" else part, {}).get(name),
        }
        for part, placed in parts
        for rank, name in enumerate(names)
        if placed.get(name, 0.0) > 0
    ]
    tip = tips(("part", "part"), ("place", "place"), ("share", "of it", ".1%"), ("tensors", "whole tensors", "d"))
    spec = chart(
        stacked(
            "part",
            "share",
            "place",
            memory_scale(names),
            title="share of the part",
            tooltip=tip,
            names=[part for part, _ in parts],
            along=SHARES,
        ),
        height=max(len(parts) * 30, 80),
    )
    columns = [
        *(Column("part", "part"), Column("place", "place"), Column("share", "of it", "percent")),
        *(Column("bytes", "size", "bytes"), Column("tensors", "whole tensors", "count")),
    ]
    loss = percent_text(data["whole_tensors"]["loss"])
    return Chart(
        "Where each part of the model goes", spec, Table(columns, rows), about=f"In whole tensors {loss} slower."
    )


def picture(data: InferDoc) -> Picture:
    """What capacity buys, alone."""
    title = f"{data['model']} on {data['gpu']} and {data['machine']}"
    return Picture(title, _capacities(data), about=data["answer"], columns=1)


def _capacities(data: InferDoc) -> list[Chart]:
    """Throughput of the best plan as one tier grows or shrinks; nothing where nobody asked for it."""
    rows: list[Row] = [{**each} for each in data.get("capacities", ()) if each["tokens_s"] is not None]
    if not rows:
        return []
    look = points("tier", memory_scale([name for name in data["tiers"] if any(row["tier"] == name for row in rows)]))
    x = field("share", title="capacity, times what it is")
    y = field("tokens_s", title="tokens/s", scale={"zero": True})
    tip = tips(*(("tier", "tier"), ("capacity", "capacity"), ("tokens_s", "tokens/s", ".4~g")), ("batch", "batch", "d"))
    now: Spec = {"data": {"values": [{"share": 1.0, "tokens_s": data["tokens_s"], "label": "the machine as it is"}]}}
    spec = chart(
        *line_with_dots(x, y, look, tip),
        {
            **now,
            "mark": {"type": "point", "shape": "diamond", "filled": True, "size": 130, "opacity": 1, "color": OURS},
            "encoding": {"x": x, "y": y},
        },
        {
            **now,
            "mark": {"type": "text", "dy": -12, "fontSize": 11, "fontWeight": "bold", "color": INK},
            "encoding": {"x": x, "y": y, "text": {"field": "label"}},
        },
    )
    columns = [
        *(
            Column("tier", "tier"),
            Column("capacity_bytes", "capacity", "bytes"),
            Column("share", "of what it has", "times"),
        ),
        *(Column("tokens_s", "tokens/s", "number"), Column("batch", "batch", "count")),
    ]
    named = [{**row, "capacity": bytes_text(row["capacity_bytes"])} for row in rows]
    return [
        Chart(
            "What capacity buys",
            spec,
            Table(columns, rows),
            values=named,
            about="One tier, the others as they are.",
            wide=True,
        )
    ]


def training(source: Source, shelf: Shelf) -> Section:  # noqa: ARG001 (a builder's signature)
    """Steps of training by policy, and where the plan puts the optimizer's states."""
    data: TrainDoc = source.data  # type: ignore[assignment] # recognised by its keys
    best = data["policies"][0]
    return Section(
        kind="language model",
        title=f"training {data['model']} on {data['gpu']} and {data['machine']}",
        about=f"{data['stage']}, {data['batch']} sequences of {data['sequence']} tokens, {data['accumulate']} a step.",
        facts=[
            Fact("step", seconds_text(best["step_s"]) if "step_s" in best else "not possible", best.get("problem", "")),
            Fact("tokens/s", f"{best['tokens_s']:.4g}" if "tokens_s" in best else "·", best["policy"]),
            Fact("GPU holds", bytes_text(data["gpu_bytes"])),
            Fact(
                "host holds",
                bytes_text(data["host_bytes"]),
                f"DeepSpeed asks for {bytes_text(data['deepspeed_estimate_bytes'])}",
            ),
        ],
        charts=[*_steps(data), *_states(data)],
        notes=[Notes("What this rests on", data["assumptions"])],
    )


def _steps(data: TrainDoc) -> list[Chart]:
    able = [row for row in data["policies"] if "pieces_s" in row]
    pieces = list(dict.fromkeys(name for row in able for name, value in row["pieces_s"].items() if value > 0))
    if not pieces:
        return []
    rows: list[Row] = [
        {
            "policy": row["policy"],
            "piece": name,
            "rank": rank,
            "seconds": row["pieces_s"].get(name, 0.0),
            "step": row["step_s"],
        }
        for row in able
        for rank, name in enumerate(pieces)
    ]
    tip = tips(("policy", "policy"), ("piece", "piece"), ("seconds", "s", ".4~g"), ("step", "whole step, s", ".4~g"))
    names = [row["policy"] for row in able]
    spec = chart(
        stacked("policy", "seconds", "piece", scale(pieces), title="s of a step", tooltip=tip, names=names),
        height=bars_height(len(names)),
    )
    columns = [
        *(Column("policy", "policy"), Column("piece", "piece"), Column("seconds", "time", "seconds")),
        Column("step", "whole step", "seconds"),
    ]
    return [Chart("A step by policy", spec, Table(columns, rows))]


def _states(data: TrainDoc) -> list[Chart]:
    shares = data["policies"][0].get("shares", {})
    rows: list[Row] = [
        {"state": state, "tier": tier, "rank": rank, "share": placed.get(tier, 0.0)}
        for state, placed in shares.items()
        for rank, tier in enumerate(data["tiers"])
        if placed.get(tier, 0.0) > 0
    ]
    if not rows:
        return []
    tip = tips(("state", "state"), ("tier", "tier"), ("share", "of it", ".1%"))
    colours = memory_scale(data["tiers"])
    spec = chart(
        stacked(
            "state",
            "share",
            "tier",
            colours,
            title="share of the state",
            tooltip=tip,
            names=list(shares),
            along=SHARES,
        ),
        height=max(len(shares) * 30, 80),
    )
    columns = [Column("state", "state"), Column("tier", "tier"), Column("share", "of it", "percent")]
    return [Chart("Where the states go", spec, Table(columns, rows))]


def serving(source: Source, shelf: Shelf) -> Section:  # noqa: ARG001 (a builder's signature)
    """Idle sessions over tiers."""
    data: ServeDoc = source.data  # type: ignore[assignment] # recognised by its keys
    rows: list[Row] = [{**tier, "again": data["recompute_s"]} for tier in data["tiers"]]
    y = names_axis("tier", [row["tier"] for row in rows])
    spec = chart(
        {
            "mark": {"type": "bar", "height": {"band": 0.66}, "cornerRadiusEnd": 3},
            "encoding": {
                "y": y,
                "x": field("fetch_s", title="time to first token, s"),
                "color": field("tier", "nominal", None, scale=memory_scale([row["tier"] for row in rows]), legend=None),
                "tooltip": tips(("tier", "tier"), ("fetch_s", "s", ".4~g"), ("sessions", "sessions", "d")),
            },
        },
        {
            "mark": {"type": "rule", "strokeDash": [4, 3], "color": INK, "strokeWidth": 1.5},
            "encoding": {"x": field("again", aggregate="max")},
        },
        height=max(len(rows) * 34, 80),
    )
    return Section(
        kind="language model",
        title=f"{data['sessions']} idle sessions of {data['model']}",
        about=f"{data['context']} tokens each, {data['gpu']} and {data['machine']}.",
        facts=[
            Fact("a session's cache", bytes_text(data["session_bytes"])),
            Fact("mean to first token", seconds_text(data["mean_s"]), "over all sessions"),
            Fact(
                "computing again",
                seconds_text(data["recompute_s"]),
                f"a tier is worth it above {data['break_even_gb_s']:.2f} GB/s",
            ),
        ],
        charts=[
            Chart(
                "What a session waits for",
                spec,
                replace(sessions(data), title=""),
                values=rows,
                about="Dashed: computing its cache again.",
            )
        ],
    )


def ratios(source: Source, shelf: Shelf) -> Section:  # noqa: ARG001 (a builder's signature)
    """Decoding without a GPU by ratio of interleaving."""
    data: CpuDoc = source.data  # type: ignore[assignment] # recognised by its keys
    table = replace(ratio_table(data), title="")
    best = next((row for row in table.rows if row.get("ours")), table.rows[0])
    return Section(
        kind="language model",
        title=f"{data['model']} on {data['machine']}, no GPU",
        about=f"{count_text(data['backends'], 'backend')} with {count_text(data['threads'], 'thread')}, "
        f"{data['context']} tokens of context.",
        facts=[
            Fact("best ratio", best["pages"]),
            Fact("tokens/s", f"{best['tokens_s'] or 0:.3g}", f"limited by {best['bound']}"),
        ],
        charts=[
            Chart(
                "Throughput by ratio of interleaving",
                _rate_spec(table.rows, "tokens/s, all backends", "pages"),
                table,
                wide=True,
            )
        ],
    )
