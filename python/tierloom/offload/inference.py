"""A model that is served on one GPU with host memory: a request in names and figures in, the answer out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tierloom.arguments import or_none, path, reads, real, refused, text, whole
from tierloom.errors import PlacementError, RequestError
from tierloom.nouns import Machine
from tierloom.offload import planner, runtime_choice, user_search
from tierloom.offload.advice import advise
from tierloom.offload.answers import InferAnswer
from tierloom.offload.goals import goal_of
from tierloom.offload.gpu import Gpu
from tierloom.offload.host import Host, Tier
from tierloom.offload.layers import whole_layers
from tierloom.offload.length_files import lengths_of
from tierloom.offload.lengths import Lengths, variation
from tierloom.offload.model import Model
from tierloom.offload.planner import TIER_AWARE
from tierloom.offload.problem import Problem, check
from tierloom.offload.runtime import PAGED, Runtime, runtime_of
from tierloom.offload.speculation import speculation_of
from tierloom.offload.system import the_gpu, the_host, the_model
from tierloom.offload.tier_blind import NAMES as BLIND_NAMES
from tierloom.offload.tier_blind import blind_plan
from tierloom.offload.user_figures import figures
from tierloom.offload.user_search import Served

if TYPE_CHECKING:
    from tierloom.offload.goals import Goal
    from tierloom.offload.planner import InferPlan
    from tierloom.offload.runtime_choice import Choice


MARGIN = real(0.0, 1.0)


def _lengths(name: str, value: object) -> Lengths | None:
    """A reader: a whole number, what `length_files` reads from a text or a path, or what it has read."""
    if value is None or isinstance(value, Lengths):
        return value
    named = isinstance(value, str) or hasattr(value, "__fspath__")
    return lengths_of(path(name, value) if named else whole(1)(name, value), name)


@reads(
    users=or_none(whole(1)),
    tokens_per_s=or_none(real()),
    prompt=_lengths,
    answer=_lengths,
    generate=_lengths,
    shared_prefix=whole(),
    speculative=or_none(text),
)
def infer(
    model: str | Model,
    gpu: str | Gpu,
    machine: str | Machine | Host,
    *,
    users: int | None = None,
    ttft: str | float | None = None,
    tokens_per_s: float | None = None,
    throughput: bool = False,
    prompt: int | str | Lengths = 2048,
    answer: int | str | Lengths = 256,
    shared_prefix: int = 0,
    speculative: str | None = None,
    draft: str | Model | None = None,
    generate: int | str | Lengths | None = None,
    batch: int | None = None,
    runtime: str | Runtime | None = None,
    policy: str = TIER_AWARE,
    compare: Sequence[str] = ("interleave", "first-touch"),
    socket: str | None = None,
    nodes: Sequence[str] | None = None,
    peer: bool = False,
    nvme: str | Tier | None = None,
    weight_bits: float | None = None,
    kv_bits: float | None = None,
    link_gb_s: float | None = None,
    margins: tuple[float | None, float | None] = (None, None),
) -> InferAnswer:
    """Places a model that is served on one GPU with host memory, for a goal.

    With ``users`` the plan is for so many; with ``ttft`` or ``tokens_per_s`` for the most users that all get it;
    with ``throughput`` for the most tokens of all together. Without any of these the answer is a table over
    numbers of users, and the plan is its knee.

    Args:
        model: The model: a name of the catalog, a config.json, or a .gguf file.
        gpu: The GPU: a name of the catalog, or a file.
        machine: Catalog name, path of a machine file, a machine, or a host.
        users: Users in flight; a table over them by default.
        ttft: Longest time to the first token: ``"2s"``, ``"500ms"``.

            A number is of seconds.
        tokens_per_s: Fewest tokens/s for each user.
        throughput: The most tokens/s of all users, however many.
        prompt: Tokens of a prompt: a number, a range ``"100..4000"``, or a file with one length a line.
        answer: Tokens of an answer, likewise.
        shared_prefix: Tokens that all prompts start with.
        speculative: Speculative decoding: drafts of N tokens, the share accepted: ``"4:0.7"``.
        draft: Model that drafts, on the GPU; free by default.
        generate: An older word for ``answer``.
        batch: An older word for ``users``.
        runtime: flexgen, overlapped, copied, paged or resident; what model and machine allow by default.
        policy: Leave host memory to a policy, one as in ``compare``; ``"tier-aware"`` is ours.
        compare: Policies to compare with: interleave, first-touch, prefer:NODE, tier-blind (FlexGen's search).
        socket: Where the GPU and the threads are; the first by default.
        nodes: Memories that may be used, or a part of one, as ``"ldram=196GiB"``; all by default.
        peer: The GPU reaches CXL memory directly (CXL 3.1), not through the CPU.
        nvme: A block device besides: its size, GB/s read and written: ``"2TB:6.8:5"``.
        weight_bits: Bits a weight, scales included; as stored by default.
        kv_bits: Bits an element of the KV cache; the activations' by default.
        link_gb_s: Bandwidth of the GPU's link; the GPU's by default.
        margins: Share of the GPU and of each tier that may be filled; the runtime's by default.

    Raises:
        RequestError: A name or number is wrong.
        PlacementError: Nothing fits; the message says by how many GiB and what would.

    Example:
        >>> answer = infer("llama-3.1-8b", "a10", "liu-a-llm", users=4)
        >>> answer.plan.placement.batch
        4
    """
    if batch is not None and users is not None:
        message = f"{users} users and a batch of {batch}\nhint: they are the same; give --users"
        raise RequestError(message)
    goal = goal_of(users if batch is None else batch, ttft, tokens_per_s, throughput=throughput)
    prompts, answers = lengths_of(prompt, "prompt"), lengths_of(generate or answer, "answer")
    problem = Problem(
        model=the_model(model, weight_bits, kv_bits),
        gpu=the_gpu(gpu, link_gb_s),
        host=the_host(machine, socket, nodes, nvme, peer=peer),
        runtime=PAGED,
        prompt=round(prompts.mean),
        generate=round(answers.mean),
        batch=goal.users,
        variation=variation(prompts, answers),
        shared=_shared(shared_prefix, prompts),
        speculation=speculation_of(speculative, None if draft is None else the_model(draft)),
    )
    check(problem)
    choice = _choice(problem, runtime, gguf=not isinstance(model, Model) and path("model", model).endswith(".gguf"))
    problem = replace(problem, runtime=_margins(choice.runtime, margins).on(problem.host.cores))
    return _answer(problem, goal, choice, policy, compare)


def _answer(problem: Problem, goal: Goal, choice: Choice, policy: str, compare: Sequence[str]) -> InferAnswer:
    """The plan for a goal, and what other policies bring for as many users."""
    rows, at = [], 0
    if goal.kind == "table":
        rows = user_search.table(problem, policy)
        at = user_search.knee(rows)
        found = rows[at]
    elif goal.users is not None:
        found = user_search.exactly(problem, goal.users, goal.limits, policy)
    elif goal.kind == "limits":
        found = user_search.most_users(problem, goal.limits, policy)
    else:
        found = user_search.throughput(problem, policy)
    asked = problem if goal.throughput else found.plan.problem
    rivals = {name: _rival(asked, name) for name in compare if name != policy}
    plan = planner.at_least_as(found.plan, [rival for rival in rivals.values() if not isinstance(rival, str)])
    if plan is not found.plan:
        found = Served(plan=plan, figures=figures(plan))
    return InferAnswer(
        plan=plan,
        whole=whole_layers(plan),
        rivals=rivals,
        advice=advise(plan),
        goal=goal,
        choice=choice,
        figures=found.figures,
        table=rows,
        knee=at,
    )


def _choice(problem: Problem, runtime: str | Runtime | None, *, gguf: bool) -> Choice:
    if runtime is None:
        return runtime_choice.choose(problem, gguf=gguf)
    named = runtime if isinstance(runtime, Runtime) else runtime_of(text("runtime", runtime))
    return runtime_choice.asked_for(named, 0 if gguf else problem.model.experts)


def _shared(tokens: int, prompts: Lengths) -> int:
    if not 0 <= tokens < prompts.shortest:
        message = (
            f"a shared prefix of {tokens} tokens, and the shortest prompt has {prompts.shortest}\n"
            "hint: it is the start of every prompt, and each has at least one token of its own"
        )
        raise RequestError(message)
    return tokens


def _rival(problem: Problem, policy: str) -> InferPlan | str:
    try:
        return blind_plan(problem) if policy in BLIND_NAMES else planner.plan(problem, policy)
    except PlacementError as error:
        return str(error).split("\nhint:", maxsplit=1)[0]


def _margins(runtime: Runtime, margins: tuple[float | None, float | None]) -> Runtime:
    if not isinstance(margins, Sequence) or len(margins) != 2:
        raise refused(margins, "margins", "no pair", "give two shares, of the GPU and of each memory, or None for each")
    on_gpu, on_host = (None if each is None else MARGIN("margins", each) for each in margins)
    runtime = runtime if on_gpu is None else replace(runtime, gpu_margin=on_gpu)
    return runtime if on_host is None else replace(runtime, host_margin=on_host)
