"""The four verbs of ``offload`` as rows; their engines, and SciPy with them, are loaded when they are asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tierloom.nouns import Machine
from tierloom.study.rows import by_name, names_of, picked
from tierloom.study.scaling import scaled

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tierloom.offload.gpu import Gpu
    from tierloom.offload.model import Model
    from tierloom.offload.training import Stage
    from tierloom.study.rows import Row


def _model(name: str) -> Model:
    from tierloom.offload.catalog import load_model

    return load_model(name)


def _gpu(name: str) -> Gpu:
    from tierloom.offload.catalog import load_gpu

    return load_gpu(name)


NOUNS: dict[str, Callable[[str], object]] = {"model": _model, "gpu": _gpu, "machine": Machine.load}


def infer_row(
    model: Model,
    gpu: Gpu,
    machine: Machine,
    scale: Mapping[str, float],
    prompt: int = 2048,
    generate: int = 256,
    batch: int | None = None,
    runtime: str = "flexgen",
    policy: str = "tier-aware",
    compare: str | list[str] = "",
    socket: str | None = None,
    tiers: str | list[str] | None = None,
    peer: bool = False,  # noqa: FBT001, FBT002 (by name, like all of them)
    weight_bits: float | None = None,
    kv_bits: float | None = None,
    link_gb_s: float | None = None,
) -> Row:
    """Throughput of a served model, its batch, and what each place holds."""
    from tierloom.offload import infer

    answer = infer(
        model,
        gpu,
        scaled(machine, scale),
        prompt=prompt,
        generate=generate,
        batch=batch,
        runtime=runtime,
        policy=policy,
        compare=names_of(compare) or (),
        socket=socket,
        tiers=names_of(tiers),
        peer=peer,
        weight_bits=weight_bits,
        kv_bits=kv_bits,
        link_gb_s=link_gb_s,
    ).data
    keys = "tokens_s low_tokens_s high_tokens_s batch gpu_batch prefill_s decode_step_s prefill_bound decode_bound"
    return {
        **_renamed(picked(answer, *keys.split()), batch="best_batch"),
        **by_name(answer["places"], "place", "weights_bytes", "kv_bytes"),
        **by_name(answer["policies"], "policy", "tokens_s"),
    }


def train_row(
    model: Model,
    gpu: Gpu,
    machine: Machine,
    scale: Mapping[str, float],
    sequence: int = 1024,
    batch: int | None = None,
    accumulate: int = 1,
    stage: Stage = "zero-offload",
    recompute: bool = True,  # noqa: FBT001, FBT002
    delayed: bool = False,  # noqa: FBT001, FBT002
    compare: str | list[str] = "",
    socket: str | None = None,
    tiers: str | list[str] | None = None,
    link_gb_s: float | None = None,
) -> Row:
    """Time of a training step, and where the optimizer's states are."""
    from tierloom.offload import train

    answer = train(
        model,
        gpu,
        scaled(machine, scale),
        sequence=sequence,
        batch=batch,
        accumulate=accumulate,
        stage=stage,
        recompute=recompute,
        delayed=delayed,
        compare=names_of(compare) or (),
        socket=socket,
        tiers=names_of(tiers),
        link_gb_s=link_gb_s,
    ).data
    ours, *others = answer["policies"]
    return {
        **_plain(ours, "step_s", "tokens_s"),
        **_renamed(picked(answer, "batch", "gpu_bytes", "host_bytes"), batch="best_batch"),
        **{f"{tier}.held_bytes": held for tier, held in ours.get("held_bytes", {}).items()},
        **by_name(others, "policy", "step_s"),
    }


def serve_row(
    model: Model,
    gpu: Gpu,
    machine: Machine,
    scale: Mapping[str, float],
    sessions: int,
    context: int,
    socket: str | None = None,
    tiers: str | list[str] | None = None,
    kv_bits: float | None = None,
) -> Row:
    """What an idle session waits for its cache, and how many each memory keeps."""
    from tierloom.offload import serve

    answer = serve(
        model,
        gpu,
        scaled(machine, scale),
        sessions=sessions,
        context=context,
        socket=socket,
        tiers=names_of(tiers),
        kv_bits=kv_bits,
    )
    return {
        **picked(answer, "mean_s", "recompute_s", "session_bytes", "break_even_gb_s"),
        **by_name(answer["tiers"], "tier", "sessions", "fetch_s", "worth"),
    }


def cpu_row(
    model: Model,
    machine: Machine,
    scale: Mapping[str, float],
    threads: int | None = None,
    backends: int = 1,
    context: int = 2048,
    socket: str | None = None,
    weight_bits: float | None = None,
) -> Row:
    """Tokens per second of the best ratio of interleaving."""
    from tierloom.offload import cpu

    answer = cpu(
        model,
        scaled(machine, scale),
        threads=threads,
        backends=backends,
        context=context,
        socket=socket,
        weight_bits=weight_bits,
    )
    (best,) = [row for row in answer["ratios"] if row["pages"] == answer["best"]]
    ratio = ":".join(f"{pages}" for pages in answer["best"].values())
    return {"ratio": ratio, **_plain(best, "tokens_s", "gb_s", "latency_ns", "bound")}


def _plain(document: Any, *keys: str) -> Row:  # noqa: ANN401 (a document)
    return {key: document.get(key) for key in keys}


def _renamed(row: Row, **names: str) -> Row:
    return {names.get(key, key): value for key, value in row.items()}
