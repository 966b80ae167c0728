"""Tables of offloading plans: what each policy brings, what each place holds, where the time goes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tierloom.columns import Column
from tierloom.offload.columns import PLACES, STEPS, place_rows, step_rows
from tierloom.offload.documents import TIED
from tierloom.offload.runtime import runtime_of
from tierloom.report.table_layout.table import OURS, Table, noted
from tierloom.units import bytes_text, count_text, percent_text, seconds_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tierloom.columns import Row
    from tierloom.offload.catalog import Entry
    from tierloom.offload.documents import (
        CpuDoc,
        InferDoc,
        RatioDoc,
        RivalDoc,
        ServeDoc,
        TrainDoc,
        UsersDoc,
    )
    from tierloom.offload.model import Model

TRILLION = 10**12

LONG = 32 * 1024
"""Tokens of the context that the list of models shows the cache for."""


def users(data: InferDoc) -> Table:
    """What each user gets, by number of users."""
    rows = [_users_row(row, is_knee=row.get("knee", False)) for row in data["table"]]
    note = "first token: behind the others; alone: nobody else asks; all at once: the last of them all."
    if data["table"]:
        note += "\nknee: the last row to which twice the users brought at least 20 % more tokens/s in all."
    return Table(
        USERS, rows or [{**_users_row(data["users"], is_knee=False), "style": OURS}], "What each user gets", note
    )


USERS = (
    *(Column("users", "users", "number"), Column("tokens_s_user", "tokens/s each", "rate")),
    *(Column("ttft_s", "first token", "seconds"), Column("ttft_alone_s", "alone", "seconds")),
    *(Column("ttft_last_s", "all at once", "seconds"), Column("tokens_s", "tokens/s in all", "rate")),
    *(Column("weights", "weights"), Column("kv", "KV cache")),
)


def _users_row(row: UsersDoc, *, is_knee: bool) -> Row:
    return {
        **row,
        "users": f"{row['users']}{' knee' if is_knee else ''}",
        "weights": _where(row["weights_bytes"]),
        "kv": _where(row["kv_bytes"]),
        "style": OURS if is_knee else "",
    }


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
    rows = place_rows(data["places"])
    return Table(PLACES, rows, "What each place holds", "may hold: the margin that the runtime leaves of the capacity.")


def parts(data: InferDoc) -> Table:
    """Where each part of the model goes, in the whole tensors and pieces of cache that a runtime can place."""
    names = [place["place"] for place in data["places"]]
    columns = [
        *(Column("part", "part"), Column("size_bytes", "size", "bytes", "key"), Column("of", "pieces", "count")),
        *(Column(f"in {name}", name, "count", "key") for name in names),
    ]
    whole = data["whole_tensors"]
    rows = [
        {
            "part": "KV cache" if part == "kv" else part,
            "size_bytes": sum(placed.values()),
            "of": whole["of"][part],
            **{f"in {name}": whole["tensors"][part][name] or None for name in names},
        }
        for part, placed in [*data["weights_bytes"].items(), ("kv", data["kv_bytes"])]
    ]
    loss = f"{percent_text(whole['loss'])} less than the plan, which cuts them anywhere; --json has its shares."
    note = f"In whole tensors, and pieces of the cache: {whole['tokens_s']:.3g} tokens/s, {loss}"
    return Table(columns, rows, "Where each part goes", note)


def times(data: InferDoc) -> Table:
    """Where the time goes."""
    columns = [
        Column("piece", "piece"),
        Column("prefill_s", "prefill", "seconds"),
        Column("decode_s", "decode step", "seconds"),
    ]
    prefill, decode = data["prefill_pieces_s"], data["decode_pieces_s"]
    rows: list[Row] = [
        {"piece": piece, "prefill_s": prefill.get(piece) or None, "decode_s": decode.get(piece) or None}
        for piece in {**prefill, **decode}
        if prefill.get(piece) or decode.get(piece)
    ]
    whole = {"piece": "together", "prefill_s": data["prefill_s"], "decode_s": data["decode_step_s"], "style": "bold"}
    steps = f"Whole block: {seconds_text(data['total_s'])}."
    prefilling = f"Pieces of prefill overlap: it waits for {data['prefill_bound']}."
    return Table(columns, [*rows, whole], "Where the time goes", f"{prefilling} {_added(data)} {steps}")


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
    held, asked = bytes_text(data["host_bytes"]), bytes_text(data["deepspeed_estimate_bytes"])
    made = Table(
        STEPS,
        step_rows(data["policies"]),
        f"{data['model']} on {data['gpu']} and {data['machine']}, {data['stage']}, "
        f"{data['batch']} x {data['sequence']} tokens",
        f"GPU holds {bytes_text(data['gpu_bytes'])}, host {held}; DeepSpeed's estimator asks the host for {asked}.",
    )
    for row in data["policies"]:
        if "problem" in row:
            made.add_reason(row["policy"], f"not possible: {row['problem']}")
    return made


def states(data: TrainDoc) -> Table:
    """Where the plan puts the optimizer's states."""
    columns = [Column("state", "state"), *(Column(tier, tier, "percent", "key") for tier in data["tiers"])]
    best = data["policies"][0]
    held = best.get("held_bytes", {})
    rows: list[Row] = [
        {"state": state, **{tier: _or_none(placed.get(tier, 0.0)) for tier in data["tiers"]}}
        for state, placed in best.get("shares", {}).items()
    ]
    together = {tier: bytes_text(held.get(tier, 0.0)) for tier in data["tiers"]}
    return Table(columns, [*rows, {"state": "together", **together, "style": "bold"}], "Where the states go")


def _or_none(share: float) -> float | None:
    return share if share > 0.0005 else None


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
    rows = [
        {
            "name": entry.name,
            "released": entry.released,
            "title": entry.data["title"],
            "parameters": _many(model.parameters),
            **{key: getattr(model, key) for key in ("weight_bytes", "kv_bytes_per_token")},
            "cache_bytes": model.cache_bytes(LONG),
        }
        for entry, model in zip(entries, sizes, strict=True)
    ]
    note = "The cache grows by `KV a token`; windows and states of layers that keep less come to it once."
    return Table(MODELS, rows, "Models", note)


MODELS = (
    *(Column("name", "model"), Column("released", "released"), Column("parameters", "parameters", "number")),
    *(Column("weight_bytes", "weights", "bytes"), Column("kv_bytes_per_token", "KV a token", "bytes")),
    *(Column("cache_bytes", f"cache at {LONG // 1024} Ki", "bytes"), Column("title", "what it is")),
)


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
