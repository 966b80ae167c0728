"""``tierloom offload``: LLMs with too little GPU memory, on a host with several kinds of memory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tierloom import offload, outputs
from tierloom.commands import next_command, occupied, options, say
from tierloom.commands.function_options import of
from tierloom.commands.groups import Group
from tierloom.errors import RequestError

if TYPE_CHECKING:
    from tierloom.commands.function_options import F
    from tierloom.offload.answers import InferAnswer
    from tierloom.offload.documents import CapacityDoc, InferDoc


INFER = "offload.inference:infer"
TRAIN = "offload.training:train"
SERVE = "offload.idle_sessions:serve"
CPU = "offload.cpu_decode:cpu"
"""The functions whose arguments the options are."""


@click.group(
    name="offload",
    cls=Group,
    epilog=options.examples(
        "tierloom offload infer --model llama-3.1-70b --gpu a10 --machine liu-a",
        "tierloom offload list",
    ),
)
def verb() -> None:
    """Place an LLM's tensors over GPU and host memory tiers: which where, what batch, how fast."""


@verb.command(name="list", epilog=options.examples("tierloom offload list", "tierloom offload list --json"))
@options.as_json
def list_(as_json: bool) -> None:
    """List the models and GPUs of the catalog, newest first."""
    from tierloom.offload import catalog
    from tierloom.report.tables import offloads

    entries = catalog.newest_first(map(catalog.model_entry, catalog.model_names()))
    sizes = [catalog.load_model(entry.name) for entry in entries]
    cards = catalog.newest_first(map(catalog.gpu_entry, catalog.gpu_names()))
    if as_json:
        listed = [
            {
                "name": model.name,
                "released": entry.released,
                "parameters": model.parameters,
                "weight_bytes": model.weight_bytes,
                "checkpoint_bytes": model.checkpoint_bytes,
                "kv_bytes_per_token": model.kv_bytes_per_token,
            }
            for entry, model in zip(entries, sizes, strict=True)
        ]
        gpus = [{"name": card.name, **card.data} for card in cards]
        say.document("offload-catalog", {"models": listed, "gpus": gpus})
        return
    say.show(offloads.models(entries, sizes), offloads.gpus(cards))
    say.then("tierloom offload infer --model llama-3.1-70b --gpu a10 --machine liu-a")


def where(function: F) -> F:
    """The options that say which machine, which of its sockets, and which of its memories."""
    return options.machine(of(INFER, socket="S", nodes="A[=SIZE],B")(function))


def what(function: F) -> F:
    """The options that say what runs on what: model, GPU, and where."""
    return of(INFER, model="M", gpu="G")(where(function))


@verb.command(
    name="infer",
    epilog=options.examples(
        "tierloom offload infer --model qwen3-32b --gpu a10 --machine liu-a",
        "tierloom offload infer --model qwen3-32b --gpu a10 --machine liu-a --ttft 10s --tokens-per-s 2",
    ),
)
@what
@of(
    INFER,
    users="--users --batch N",
    ttft="TIME",
    tokens_per_s="N",
    throughput="",
    prompt="N",
    answer="--answer --generate N",
    shared_prefix="N",
    speculative="N:SHARE",
    draft="M",
    runtime="R",
    policy="P",
    compare="A,B",
    peer="",
    weight_bits="N",
    kv_bits="N",
    link_gb_s="--gpu-link GB/S",
    nvme="SIZE:R:W",
)
@click.option(
    "--emit",
    "tool",
    metavar="TOOL",
    help="Write the plan for flexgen, llama.cpp, vllm, deepspeed, ktransformers, lmcache or tierloom-plan.",
)
@options.output("File for --emit; stdout by default.")
@options.plot("throughput against capacity")
@options.as_json
def infer_(tool: str | None, output: Path | None, plot: Path | None, as_json: bool, **asked: Any) -> None:  # noqa: ANN401 (the options are the arguments of `offload.infer`)
    """Plan the serving of a model: what each user gets, and where weights and KV cache are."""
    if as_json and tool and output is None:
        message = "--json and --emit both want stdout\nhint: give --emit a file with -o"
        raise RequestError(message)
    with say.progress("planning"):
        answer = offload.infer(**asked)
    if doubt := beyond_context(answer):
        say.warn(doubt)
    told = answer.data
    if plot:
        told = {**told, "capacities": draw(answer, plot)}
    if tool:
        write(answer, tool, output)
    if as_json:
        say.document("inference", {**told})
    elif tool is None or output is not None:
        show(answer.data)
    if tool is None and not as_json:
        emitted = answer.choice.tool
        say.then(next_command.again("--emit", emitted) if emitted else next_command.page())


def beyond_context(answer: InferAnswer) -> str | None:
    """What to know of requests that are longer than the model's longest context."""
    model, longest = answer.plan.problem.model, answer.data["longest_request"]
    if not 0 < model.max_positions < longest:
        return None
    return (
        f"{model.name} was made for contexts of at most {model.max_positions} tokens, and a request has {longest}: it "
        "takes so long, but what the model then says is worth little unless the runtime stretches its positions"
    )


def draw(answer: InferAnswer, plot: Path) -> list[CapacityDoc]:
    """Draws throughput against the capacity of each tier, and says what it is."""
    from tierloom.offload.capacity import curves
    from tierloom.report import picture
    from tierloom.report.pages import language_models

    with say.progress("planning for other capacities"):
        found = curves(answer.plan.problem)
    picture.save(language_models.picture({**answer.data, "capacities": found}), plot)
    say.wrote("throughput against capacity", plot)
    return found


def write(answer: InferAnswer, tool: str, output: Path | None) -> None:
    """Writes the plan for a tool, to a file or stdout."""
    from tierloom.offload.exporters import emit, mismatch

    text = emit(tool, answer)
    if doubt := mismatch(tool, answer):
        say.warn(doubt)
    if output is None:
        say.text(text)
        return
    occupied.refuse_others(output, "plan" if tool == "tierloom-plan" else f"plan for {tool}")
    outputs.write(output, text)
    say.wrote(f"plan for {tool}", output)


def show(data: InferDoc) -> None:
    """The whole answer as tables on stdout."""
    from tierloom.report.tables import offloads

    say.show(data["answer"], data["why_runtime"])
    say.show(
        offloads.users(data),
        offloads.policies(data),
        offloads.places(data),
        offloads.parts(data),
        offloads.times(data),
        *offloads.advice(data),
    )
    for assumption in data["assumptions"]:
        say.show(f"assumed: {assumption}")


@verb.command(
    name="train",
    epilog=options.examples(
        "tierloom offload train --model gpt2-8b --gpu a10 --machine liu-a",
        "tierloom offload train --model llama-3.1-8b --gpu h100 --machine liu-a --stage zero-3 --json",
    ),
)
@what
@of(
    TRAIN,
    sequence="N",
    batch="N",
    accumulate="N",
    stage="",
    recompute="--recompute/--keep",
    delayed="",
    compare="A,B",
)
@of(INFER, link_gb_s="--gpu-link GB/S")
@click.option("--emit", "tool", type=click.Choice(["deepspeed"]), help="Write DeepSpeed's JSON to stdout instead.")
@options.as_json
def train_(tool: str | None, as_json: bool, **asked: Any) -> None:  # noqa: ANN401 (the options are the arguments of `offload.train`)
    """Plan training with optimizer states on the host: where each state lives, how long a step takes."""
    from tierloom.report.tables import offloads

    answer = offload.train(**asked)
    if tool:
        from tierloom.offload.exporters.deepspeed import deepspeed_training

        say.text(deepspeed_training(answer.plan))
        return
    if as_json:
        say.document("training", {**answer.data})
        return
    say.show(offloads.training(answer.data), offloads.states(answer.data))
    for assumption in answer.data["assumptions"]:
        say.show(f"assumed: {assumption}")
    say.then(next_command.again("--emit", "deepspeed"))


@verb.command(
    name="serve",
    epilog=options.examples(
        "tierloom offload serve --model llama-3.1-70b --gpu h100 --machine liu-a --sessions 40 --context 32768",
        "tierloom offload serve --model deepseek-v3 --gpu h200 --machine liu-a --sessions 100 --context 65536 --json",
    ),
)
@what
@of(SERVE, sessions="N", context="N")
@of(INFER, kv_bits="N")
@options.as_json
def serve_(as_json: bool, **asked: Any) -> None:  # noqa: ANN401 (the options are the arguments of `offload.serve`)
    """Place the KV caches of idle sessions: how many fit where, and what a session waits for its own."""
    from tierloom.report.tables import offloads

    data = offload.serve(**asked)
    if as_json:
        say.document("serving", {**data})
        return
    say.show(offloads.sessions(data))
    say.then(next_command.page())


@verb.command(
    name="cpu",
    epilog=options.examples(
        "tierloom offload cpu --model llama-7b --weight-bits 4.5 --machine bytedance-spr-a1000",
        "tierloom offload cpu --model llama-7b --machine liu-a --threads 32 --backends 4 --json",
    ),
)
@of(INFER, model="M")
@options.machine
@of(CPU, threads=("--threads -t N", {"type": click.IntRange(min=1)}))
@options.socket
@of(CPU, backends="N", context="N")
@of(INFER, weight_bits="N")
@options.as_json
def cpu_(as_json: bool, **asked: Any) -> None:  # noqa: ANN401 (the options are the arguments of `offload.cpu`)
    """Decode without a GPU: which ratio of interleaving gives the most tokens per second.

    Loaded-latency curves of the machine decide: a queue at near memory is shortened by far memory.
    """
    from tierloom.report.tables import offloads

    data = offload.cpu(**asked)
    if as_json:
        say.document("ratios", {**data})
        return
    say.show(offloads.ratios(data))
    say.then(next_command.page())
