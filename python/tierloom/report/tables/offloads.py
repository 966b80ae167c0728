"""Tables of offloading plans: what each policy brings, what each place holds, where the time goes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tierloom.offload.documents import TIED
from tierloom.offload.runtime import runtime_of
from tierloom.report.columns import Column
from tierloom.report.tables.layout import Table, noted, table
from tierloom.units import bytes_text, count_text, percent_text, rate_text, seconds_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tierloom.offload.catalog import Entry
    from tierloom.offload.documents import CpuDoc, InferDoc, RatioDoc, RivalDoc, ServeDoc, TrainDoc
    from tierloom.offload.model import Model
    from tierloom.report.columns import Row

EMPTY = "·"

TRILLION = 10**12

LONG = 32 * 1024
"""Tokens of the context that the list of models shows the cache for."""


def users(data: InferDoc) -> Table:
    """What each user gets, by number of users."""
    rows = data["table"] or [data["users"]]
    made = table(
        "What each user gets",
        ("users", "right"),
        ("tokens/s each", "right"),
        ("first token", "right"),
        ("alone", "right"),
        ("all at once", "right"),
        ("tokens/s in all", "right"),
        ("weights", "left"),
        ("KV cache", "left"),
    )
    for row in rows:
        knee = row.get("knee", True)
        made.add_row(
            f"{row['users']}{' knee' if row.get('knee') else ''}",
            rate_text(row["tokens_s_user"]),
            *(seconds_text(row[key]) for key in ("ttft_s", "ttft_alone_s", "ttft_last_s")),
            rate_text(row["tokens_s"]),
            *(_where(row[key]) for key in ("weights_bytes", "kv_bytes")),
            style="bold green" if knee else None,
        )
    note = "first token: behind the others; alone: nobody else asks; all at once: the last of them all."
    if data["table"]:
        note += "\nknee: the last row to which twice the users brought at least 20 % more tokens/s in all."
    return noted(made, note)


def _where(placed: Mapping[str, float]) -> str:
    """The places that hold a share worth a word, the fullest first."""
    whole = sum(placed.values())
    shares = sorted(((amount / whole, place) for place, amount in placed.items()), reverse=True)
    return ", ".join(f"{place} {share * 100:.0f}" for share, place in shares if share >= 0.005) + " %"


def policies(data: InferDoc) -> Table:
    """The plan and what other policies would bring."""
    tokens = f"{data['prompt']} + {data['generate']} tokens"
    if data["longest_request"] > data["prompt"] + data["generate"]:
        tokens = f"{tokens} on average, at most {data['longest_request']}"
    made = Table(
        POLICIES,
        [{**_plan_row(data), "ours": True}, *map(_rival_row, data["policies"])],
        f"{data['model']} on {data['gpu']} and {data['machine']}, {tokens}, runtime {data['runtime']}",
    )
    for rival in data["policies"]:
        if "problem" in rival:
            made.add_reason(rival["policy"], f"not possible: {rival['problem']}")
    bound = data["bound_tokens_s"]
    about = f" The optimum over batches that need not be whole is {bound:.3g}." if bound else ""
    said = [f"batch: sequences of a block, as GPU batches of so many.{about}"]
    return noted(made, "\n".join([*said, *(_why_tied(rival) for rival in data["policies"] if "tie" in rival)]))


POLICIES = (
    *(Column("policy", "policy"), Column("tokens_s", "tokens/s", "significant", "key")),
    *(Column("low", "range", "significant", to="high"), Column("batch", "batch", "number")),
    Column("against", "plan against it", "gain", "key"),
)


def _plan_row(data: InferDoc) -> Row:
    ends = {"low": data["low_tokens_s"], "high": data["high_tokens_s"]}
    return {"policy": data["policy"], "tokens_s": data["tokens_s"], **ends, "batch": _block(data), "against": None}


def _rival_row(rival: RivalDoc) -> Row:
    if "problem" in rival:
        return {"policy": rival["policy"], "tokens_s": None, "against": "not possible"}
    told = {key: rival[key] for key in ("policy", "tokens_s", "against")}
    return {**told, "batch": _block(rival)}


def _why_tied(rival: RivalDoc) -> str:
    """Why the plan is no faster than a policy: what infinitely fast memories would bring."""
    tie = rival["tie"]
    gain = f"{tie['room'] * 100:.1f} %"
    if tie["room"] <= TIED:
        return (
            f"{rival['policy']} ties, and no placement breaks the tie: infinitely fast memories would bring {gain}, "
            f"for the block waits for: {tie['bound']}."
        )
    return f"{rival['policy']} ties: infinitely fast memories would bring {gain}, better placements no more than this."


def _block(data: InferDoc | RivalDoc) -> str:
    batch, each = data["batch"], data["gpu_batch"]
    return f"{batch} ({-(-batch // each)} x {each})"


def places(data: InferDoc) -> Table:
    """What every place holds."""
    made = table(
        "What each place holds",
        ("place", "left"),
        ("weights", "right"),
        ("KV cache", "right"),
        ("hidden", "right"),
        ("buffers", "right"),
        ("of it, in all", "right"),
        ("may hold", "right"),
    )
    for place in data["places"]:
        held = [place["weights_bytes"], place["kv_bytes"], place["hidden_bytes"], place["buffer_bytes"]]
        made.add_row(
            place["place"],
            *(bytes_text(amount) if amount >= 1.0 else EMPTY for amount in held),
            bytes_text(sum(held)),
            bytes_text(place["allowed_bytes"]),
        )
    return noted(made, "may hold: the margin that the runtime leaves of the capacity.")


def parts(data: InferDoc) -> Table:
    """Where each part of the model goes, in the whole tensors and pieces of cache that a runtime can place."""
    names = [place["place"] for place in data["places"]]
    made = table(
        "Where each part goes",
        ("part", "left"),
        ("size", "right", "key"),
        ("pieces", "right"),
        *((name, "right", "key") for name in names),
    )
    whole = data["whole_tensors"]
    for part, placed in [*data["weights_bytes"].items(), ("kv", data["kv_bytes"])]:
        counted = whole["tensors"][part]
        cells = [str(counted[name] or EMPTY) for name in names]
        named = "KV cache" if part == "kv" else part
        made.add_row(named, bytes_text(sum(placed.values())), str(whole["of"][part]), *cells)
    loss = f"{percent_text(whole['loss'])} less than the plan, which cuts them anywhere; --json has its shares."
    return noted(made, f"In whole tensors, and pieces of the cache: {whole['tokens_s']:.3g} tokens/s, {loss}")


def times(data: InferDoc) -> Table:
    """Where the time goes."""
    made = table("Where the time goes", ("piece", "left"), ("prefill", "right"), ("decode step", "right"))
    prefill, decode = data["prefill_pieces_s"], data["decode_pieces_s"]
    for piece in [*prefill, *(name for name in decode if name not in prefill)]:
        if prefill.get(piece) or decode.get(piece):
            cells = [seconds_text(pieces[piece]) if pieces.get(piece) else EMPTY for pieces in (prefill, decode)]
            made.add_row(piece, *cells)
    made.add_row("together", seconds_text(data["prefill_s"]), seconds_text(data["decode_step_s"]), style="bold")
    steps = f"Whole block: {seconds_text(data['total_s'])}."
    prefilling = f"Pieces of prefill overlap: it waits for {data['prefill_bound']}."
    return noted(made, f"{prefilling} {_added(data)} {steps}")


def _added(data: InferDoc) -> str:
    """What a decode step comes to from its pieces."""
    if runtime_of(data["runtime"]).overlapped:
        return f"So do those of a decode step: it waits for {data['decode_bound']}."
    return (
        "A decode step adds up the longest of link and loads, the longest of the CPU's waits and reads, its arithmetic "
        f"and the GPU: runtime {data['runtime']} does them one after the other."
    )


def advice(data: InferDoc) -> list[Table]:
    """What would make the plan faster, where something is known to."""
    limits = data["advice"]
    if limits is None:
        return []
    rows = [
        {"resource": resource, "worth": f"{share:.2f} % more tokens/s for 1 % more"}
        for resource, share in limits["share_per_share"].items()
    ]
    rows += [
        {"resource": f"capacity of {place}", "worth": f"{worth:.3g} tokens/s for one more GiB"}
        for place, worth in limits["tokens_s_per_gib"].items()
    ]
    return [Table([Column("resource", "resource"), Column("worth", "worth")], rows, "What would make it faster")]


def training(data: TrainDoc) -> Table:
    """Steps of training by policy."""
    made = table(
        f"{data['model']} on {data['gpu']} and {data['machine']}, {data['stage']}, "
        f"{data['batch']} x {data['sequence']} tokens",
        ("policy", "left"),
        ("step", "right"),
        ("tokens/s", "right", "key"),
        ("forward", "right"),
        ("backward", "right"),
        ("optimizer", "right"),
        ("parameters in", "right"),
        ("plan against it", "right", "key"),
    )
    for index, row in enumerate(data["policies"]):
        if "problem" in row:
            made.add_row(row["policy"], "-", "", "", "", "", "", "not possible")
            made.add_reason(row["policy"], f"not possible: {row['problem']}")
            continue
        cells = [seconds_text(seconds) if seconds else EMPTY for seconds in row["pieces_s"].values()]
        against = f"{row['against'] * 100:+.1f} %" if index else ""
        told = [seconds_text(row["step_s"]), f"{row['tokens_s']:.4g}", *cells, against]
        made.add_row(row["policy"], *told, ours=index == 0)
    held, asked = bytes_text(data["host_bytes"]), bytes_text(data["deepspeed_estimate_bytes"])
    note = f"GPU holds {bytes_text(data['gpu_bytes'])}, host {held}; DeepSpeed's estimator asks the host for {asked}."
    return noted(made, note)


def states(data: TrainDoc) -> Table:
    """Where the plan puts the optimizer's states."""
    made = table("Where the states go", ("state", "left"), *((tier, "right", "key") for tier in data["tiers"]))
    best = data["policies"][0]
    for state, placed in best.get("shares", {}).items():
        shares = [placed.get(tier, 0.0) for tier in data["tiers"]]
        made.add_row(state, *(percent_text(share) if share > 0.0005 else EMPTY for share in shares))
    held = best.get("held_bytes", {})
    made.add_row("together", *(bytes_text(held.get(tier, 0.0)) for tier in data["tiers"]), style="bold")
    return made


def sessions(data: ServeDoc) -> Table:
    """Idle sessions over tiers."""
    rows: list[Row] = [
        {**row, "worth": "yes" if row["worth"] else "no: computing again is quicker"} for row in data["tiers"]
    ]
    return Table(
        SESSIONS,
        [*rows, {"tier": "computing again", "fetch_s": data["recompute_s"]}],
        f"{count_text(data['sessions'], 'session')} of {data['context']} tokens of {data['model']}, {data['gpu']} and "
        f"{data['machine']}",
        f"A session's cache is {bytes_text(data['session_bytes'])}; a tier is worth it above "
        f"{data['break_even_gb_s']:.2f} GB/s. Mean over all sessions: {seconds_text(data['mean_s'])}.",
    )


SESSIONS = (
    *(Column("tier", "tier"), Column("capacity", "sessions that fit", "count"), Column("sessions", "it gets", "count")),
    *(Column("fetch_s", "time to first token", "seconds"), Column("worth", "worth it")),
)


def ratios(data: CpuDoc) -> Table:
    """Decode on the CPU by ratio of interleaving."""
    made = Table(
        RATIOS,
        [_ratio_row(row, is_best=row["pages"] == data["best"]) for row in data["ratios"]],
        f"{data['model']} on {data['machine']} without a GPU: {count_text(data['backends'], 'backend')}, "
        f"{count_text(data['threads'], 'thread')}",
        "tokens/s of all backends together, each decoding one sequence.",
    )
    for row in data["ratios"]:
        if "problem" in row:
            made.add_reason(pages_text(row), f"not possible: {row['problem']}")
    return made


RATIOS = (
    *(Column("pages", "pages"), Column("tokens_s", "tokens/s", "significant", "key")),
    *(Column("gb_s", "GB/s", "tenths"), Column("latency_ns", "latency under load", "ns")),
    Column("bound", "what limits it"),
)


def _ratio_row(row: RatioDoc, *, is_best: bool) -> Row:
    if "problem" in row:
        return {"pages": pages_text(row), "tokens_s": None, "bound": "not possible"}
    return {**row, "pages": pages_text(row), "ours": is_best}


def pages_text(row: RatioDoc) -> str:
    """Pages by memory.

    Example:
        >>> pages_text({"pages": {"ldram": 3, "cxl": 1}})
        'ldram 3 : cxl 1'
    """
    return " : ".join(f"{name} {count}" for name, count in row["pages"].items())


def models(entries: list[Entry], sizes: list[Model]) -> Table:
    """The models of the catalog."""
    made = table(
        "Models",
        ("model", "left"),
        ("released", "left"),
        ("parameters", "right"),
        ("weights", "right"),
        ("KV a token", "right"),
        (f"cache at {LONG // 1024} Ki", "right"),
        ("what it is", "left"),
    )
    for entry, model in zip(entries, sizes, strict=True):
        made.add_row(
            entry.name,
            entry.released,
            _many(model.parameters),
            bytes_text(model.weight_bytes),
            bytes_text(model.kv_bytes_per_token),
            bytes_text(model.cache_bytes(LONG)),
            entry.data["title"],
        )
    return noted(made, "The cache grows by `KV a token`; windows and states of layers that keep less come to it once.")


def _many(parameters: int) -> str:
    return f"{parameters / 1e12:.3g} trillion" if parameters >= TRILLION else f"{parameters / 1e9:.3g} billion"


def gpus(entries: list[Entry]) -> Table:
    """The GPUs of the catalog, every figure with its mark."""
    columns = [
        *(Column("name", "GPU"), Column("released", "released"), Column("memory_bytes", "memory", "bytes")),
        *(Column("memory_gb_s", "GB/s", "number"), Column("tflop_s", "TFLOP/s in 16", "number")),
        *(Column("fp8_tflop_s", "8", "number"), Column("fp4_tflop_s", "4 bits", "number")),
        *(Column("in_gb_s", "link GB/s", "number"), Column("title", "what it is")),
    ]
    rows = [{**entry.data, "name": entry.name, "released": entry.released} for entry in entries]
    return Table(columns, rows, "GPUs", has_legend=True)
