"""Training with optimizer states on the host: ZeRO-Offload, and ZeRO-3 with parameters off, over tiers.

One step is forward, backward with the gradients going out, Adam on the CPU, and the updated parameters
coming back:

``T = T_forward + max(T_backward, gradients out) + T_adam + parameters in``

What lives on the host and how often Adam touches it is that of DeepSpeed (`runtime/zero/stage_1_and_2.py`,
`csrc/includes/cpu_adam.h`, read at edaa72212): 18 bytes a parameter held, 44 moved. Gradients are made
fp32 on the GPU, so 4 bytes a parameter go out, behind the backward pass; the 16-bit parameters come back
after the update, exposed. Where Adam's arithmetic and its memory traffic meet, they partly overlap:
``T_adam = sqrt(T_arithmetic^2 + T_memory^2)``.

Placement is a linear programme over the share of each state in each tier; `T_adam` is convex in the
memory time, so it is closed in on by its tangents.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from tierloom.errors import PlacementError, RequestError
from tierloom.linear_program import Programme, Terms
from tierloom.offload.kernel_policies import filler
from tierloom.units import GIB, LINE_BYTES, count_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tierloom.linear_program import Solution
    from tierloom.offload.gpu import Gpu
    from tierloom.offload.host import Host, Tier
    from tierloom.offload.model import Model

Stage = Literal["zero-offload", "zero-3"]

ADAM_NS = 1.13
"""Arithmetic of Adam, ns a parameter on 32 cores. Fitted once, so that interleaving over LDRAM and CXL slows
the optimizer by 18 %, the largest slow-down that the 2024 study of CXL cards prints (arXiv 2405.14209)."""

ADAM_CORES = 32
TANGENTS = 8
BUCKET_BYTES = 1e9
"""Gradients under way on the GPU: DeepSpeed's reduce bucket of 5e8 elements of 2 bytes."""


@dataclass(frozen=True, kw_only=True)
class State:
    """What the host holds for each parameter, and how often one step of Adam reads and writes it, bytes."""

    name: str
    held: float
    read: float
    written: float


STATES = (
    State(name="parameters, fp32", held=4, read=8, written=4),
    State(name="momentum", held=4, read=4, written=4),
    State(name="variance", held=4, read=4, written=4),
    State(name="gradients, fp32", held=4, read=8, written=4),
    State(name="parameters, 16 bit", held=2, read=2, written=2),
)
"""Adam reads and writes the first three and reads the gradients; clipping reads and writes the gradients;
the copy to 16 bits reads the parameters, and its writes read their lines first."""

GRADIENTS, SENT = STATES[3].name, STATES[4].name


@dataclass(frozen=True, kw_only=True)
class TrainProblem:
    """One question to the training planner.

    Attributes:
        model: What is trained.
        gpu: The one GPU.
        host: What holds the states.
        sequence: Tokens of a sequence.
        batch: Sequences of a micro-batch; the most that fit when none is given.
        accumulate: Micro-batches between two steps of the optimizer.
        stage: ``zero-offload`` keeps the 16-bit parameters on the GPU, ``zero-3`` on the host.
        recompute: Activations are computed again in the backward pass.
        delayed: The optimizer's step overlaps the next forward and backward pass (one step of delay).
        gpu_margin: Share of the GPU's memory that may be filled.
        host_margin: Share of each tier that may be filled.
    """

    model: Model
    gpu: Gpu
    host: Host
    sequence: int = 1024
    batch: int | None = None
    accumulate: int = 1
    stage: Stage = "zero-offload"
    recompute: bool = True
    delayed: bool = False
    gpu_margin: float = 0.9
    host_margin: float = 0.9


@dataclass(frozen=True, kw_only=True)
class TrainPlan:
    """The planner's answer.

    Attributes:
        problem: The question, with its micro-batch.
        policy: ``tier-aware`` or the policy that was forced.
        shares: By state, share in each tier.
        pieces: Seconds of each piece of a step.
        step_s: One step of the optimizer.
        tokens_s: Tokens trained per second.
        gpu_bytes: What the GPU holds.
        held: By tier, bytes held.
    """

    problem: TrainProblem
    policy: str
    shares: Mapping[str, Mapping[str, float]]
    pieces: Mapping[str, float]
    step_s: float
    tokens_s: float
    gpu_bytes: float
    held: Mapping[str, float]


def plan(problem: TrainProblem, policy: str = "tier-aware") -> TrainPlan:
    """The fastest step.

    Raises:
        RequestError: A number has no meaning, or there is no such policy.
        PlacementError: It does not fit; the message says by how many GiB, and what would.
    """
    _check(problem)
    problem = replace(problem, batch=problem.batch or most_sequences(problem))
    needed = gpu_bytes(problem)
    if needed > problem.gpu_margin * problem.gpu.memory_bytes:
        raise PlacementError(_gpu_is_short(problem, needed))
    _host_has_room(problem)
    shares = _optimum(problem) if policy == "tier-aware" else _forced(problem, policy)
    return timed(problem, policy, shares)


def timed(problem: TrainProblem, policy: str, shares: Mapping[str, Mapping[str, float]]) -> TrainPlan:
    """A placement with the time of its step; `problem` has its micro-batch."""
    pieces = _pieces(problem, shares)
    passes = pieces["forward"] + pieces["backward"]
    update = pieces["optimizer"] + pieces["parameters in"]
    step = max(passes, update) if problem.delayed else passes + update
    tokens = problem.accumulate * (problem.batch or 0) * problem.sequence
    parameters = problem.model.parameters
    held = {
        tier.name: sum(parameters * state.held * shares[state.name].get(tier.name, 0.0) for state in STATES)
        for tier in problem.host.memories
    }
    return TrainPlan(
        problem=problem,
        policy=policy,
        shares=shares,
        pieces=pieces,
        step_s=step,
        tokens_s=tokens / step,
        gpu_bytes=gpu_bytes(problem),
        held=held,
    )


def gpu_bytes(problem: TrainProblem) -> float:
    """What the GPU holds: parameters, gradients under way, activations.

    Activations are those of Korthikanti et al. (arXiv 2205.05198, equations 2 and 3): a layer keeps
    ``s b h (34 + 5 a s / h)`` bytes, or ``2 s b h`` when it is computed again.
    """
    model, batch = problem.model, problem.batch or 1
    tokens = problem.sequence * batch
    layer = tokens * (34.0 * model.hidden + 5.0 * model.heads * problem.sequence)
    kept = model.layers * 2.0 * tokens * model.hidden + layer if problem.recompute else model.layers * layer
    parameters = 2.0 * model.parameters if problem.stage == "zero-offload" else 4.0 * model.layer_bytes
    return parameters + BUCKET_BYTES + kept


def most_sequences(problem: TrainProblem) -> int:
    """Most sequences of a micro-batch that fit the GPU; at least 1."""
    room = problem.gpu_margin * problem.gpu.memory_bytes
    one, two = (gpu_bytes(replace(problem, batch=size)) for size in (1, 2))
    return max(1, 1 + int((room - one) / (two - one)))


def _pieces(problem: TrainProblem, shares: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Seconds of each piece of a step."""
    model, gpu = problem.model, problem.gpu
    forward, backward = _passes(problem)
    out = 4.0 * model.parameters / (gpu.out_gb_s * 1e9)
    into = 2.0 * model.parameters / (gpu.in_gb_s * 1e9)
    for tier in problem.host.memories:
        gradients, sent = shares[GRADIENTS].get(tier.name, 0.0), shares[SENT].get(tier.name, 0.0)
        out = max(out, 4.0 * model.parameters * gradients / tier.write_bytes_s)
        into = max(into, 2.0 * model.parameters * sent / tier.read_bytes_s)
    memory = memory_s(problem, shares)
    rounds = problem.accumulate
    if problem.stage == "zero-3":
        again = 2.0 if problem.recompute else 1.0
        return {
            "forward": rounds * max(forward, into),
            "backward": rounds * max(backward, out, again * into),
            "optimizer": math.hypot(arithmetic_s(problem), memory),
            "parameters in": 0.0,
        }
    return {
        "forward": rounds * forward,
        "backward": rounds * max(backward, out) + (rounds - 1) * out,
        "optimizer": math.hypot(arithmetic_s(problem), memory),
        "parameters in": into,
    }


def _passes(problem: TrainProblem) -> tuple[float, float]:
    """Forward and backward pass of a micro-batch on the GPU, s: two operations a parameter and token each way."""
    model, tokens = problem.model, problem.sequence * (problem.batch or 1)
    scores = 2.0 * model.prefill_attention_flop(problem.sequence) / problem.sequence
    forward = tokens * (model.flop_per_token + scores) / problem.gpu.prefill_flop_s
    return forward, forward * (3.0 if problem.recompute else 2.0)


def arithmetic_s(problem: TrainProblem) -> float:
    """Adam's arithmetic on the socket's cores, s."""
    return ADAM_NS * 1e-9 * problem.model.parameters * ADAM_CORES / problem.host.cores


def memory_s(problem: TrainProblem, shares: Mapping[str, Mapping[str, float]]) -> float:
    """Adam's memory traffic, s: the slowest tier's bandwidth, or the latency that the cores can hide."""
    parameters, host = problem.model.parameters, problem.host
    waits = 0.0
    slowest = 0.0
    for tier in host.memories:
        here = [(state, parameters * shares[state.name].get(tier.name, 0.0)) for state in STATES]
        slowest = max(slowest, sum(each * _touch_s(state, tier) for state, each in here))
        waits += sum(each * (state.read + state.written) for state, each in here) * _wait_s(host, tier)
    return max(slowest, waits)


def _touch_s(state: State, tier: Tier) -> float:
    return state.read / tier.read_bytes_s + state.written / tier.write_bytes_s


def _wait_s(host: Host, tier: Tier) -> float:
    return tier.idle_s / (host.cores * host.lines * LINE_BYTES)


def _optimum(problem: TrainProblem) -> dict[str, dict[str, float]]:
    """Shares of the fastest step: the programme, with one more tangent of Adam's time each round."""
    points = [0.0]
    shares: dict[str, dict[str, float]] = {}
    for _ in range(TANGENTS):
        solution = _programme(problem, points).solve()
        if solution is None:
            message = "the states fit the host as a whole, but no shares of them do\nhint: report this: it is a defect"
            raise PlacementError(message)
        shares = _read(problem, solution)
        memory = solution.values["memory"]
        if any(math.isclose(memory, point, rel_tol=1e-6) for point in points):
            break
        points.append(memory)
    return shares


def _programme(problem: TrainProblem, points: list[float]) -> Programme:
    made = Programme()
    parameters, host = problem.model.parameters, problem.host
    for name in ("memory", "adam", "out", "into"):
        made.variable(name)
    for state in STATES:
        for tier in host.memories:
            made.variable(f"{state.name} {tier.name}")
        made.exactly(state.name, {f"{state.name} {tier.name}": 1.0 for tier in host.memories}, 1.0)
    waits: Terms = {"memory": -1.0}
    for tier in host.memories:
        touched = {f"{s.name} {tier.name}": parameters * _touch_s(s, tier) for s in STATES}
        held = {f"{s.name} {tier.name}": parameters * s.held for s in STATES}
        moved = {f"{s.name} {tier.name}": parameters * (s.read + s.written) * _wait_s(host, tier) for s in STATES}
        waits |= moved
        made.at_most(f"Adam in {tier.name}", touched | {"memory": -1.0}, 0.0)
        made.at_most(f"capacity of {tier.name}", held, problem.host_margin * tier.capacity_bytes)
        gradients, sent = 4.0 * parameters / tier.write_bytes_s, 2.0 * parameters / tier.read_bytes_s
        made.at_most(f"gradients to {tier.name}", {f"{GRADIENTS} {tier.name}": gradients, "out": -1.0}, 0.0)
        made.at_most(f"parameters from {tier.name}", {f"{SENT} {tier.name}": sent, "into": -1.0}, 0.0)
    made.at_most("Adam waits", waits, 0.0)
    _tangents(made, problem, points)
    _links(made, problem)
    return made


def _tangents(made: Programme, problem: TrainProblem, points: list[float]) -> None:
    arithmetic = arithmetic_s(problem)
    for index, point in enumerate(points):
        height = math.hypot(arithmetic, point)
        slope = point / height
        made.at_most(f"tangent {index}", {"memory": slope, "adam": -1.0}, slope * point - height)


def _links(made: Programme, problem: TrainProblem) -> None:
    """Gradients are hidden behind the backward pass as far as it lasts; parameters are exposed."""
    forward, backward = _passes(problem)
    parameters = problem.model.parameters
    made.at_most("link in", {"into": -1.0}, -2.0 * parameters / (problem.gpu.in_gb_s * 1e9))
    made.at_most("link out", {"out": -1.0}, -4.0 * parameters / (problem.gpu.out_gb_s * 1e9))
    made.variable("forward", low=forward)
    made.variable("backward", low=backward)
    made.at_most("gradients behind backward", {"out": 1.0, "backward": -1.0}, 0.0)
    rounds = float(problem.accumulate)
    cost: Terms = {"adam": 1.0, "backward": rounds, "memory": 1e-9}
    if problem.stage == "zero-3":
        again = 2.0 if problem.recompute else 1.0
        made.at_most("parameters behind forward", {"into": 1.0, "forward": -1.0}, 0.0)
        made.at_most("parameters behind backward", {"into": again, "backward": -1.0}, 0.0)
        made.minimise(cost | {"forward": rounds})
    else:
        made.minimise(cost | {"into": 1.0, "out": rounds - 1.0})


def _read(problem: TrainProblem, solution: Solution) -> dict[str, dict[str, float]]:
    shares = {}
    for state in STATES:
        values = {t.name: max(solution.values[f"{state.name} {t.name}"], 0.0) for t in problem.host.memories}
        whole = sum(values.values())
        shares[state.name] = {name: value / whole for name, value in values.items()}
    return shares


def _forced(problem: TrainProblem, policy: str) -> dict[str, dict[str, float]]:
    """What a policy of the kernel does: the states are allocated one after the other."""
    rooms = {tier.name: problem.host_margin * tier.capacity_bytes for tier in problem.host.memories}
    fill = filler(policy, list(rooms))
    shares = {}
    for state in STATES:
        size = problem.model.parameters * state.held
        placed = fill(size, rooms)
        rooms = {name: room - placed[name] for name, room in rooms.items()}
        shares[state.name] = {name: amount / size for name, amount in placed.items()}
    return shares


def _check(problem: TrainProblem) -> None:
    numbers = {"sequence": problem.sequence, "batch": problem.batch, "accumulate": problem.accumulate}
    for name, value in numbers.items():
        if value is not None and value < 1:
            message = f"the {name} is {value}\nhint: it has to be at least 1"
            raise RequestError(message)
    if problem.stage not in {"zero-offload", "zero-3"}:
        message = f"there is no stage `{problem.stage}`\nhint: there are zero-offload and zero-3"
        raise RequestError(message)


def _gpu_is_short(problem: TrainProblem, needed: float) -> str:
    room = problem.gpu_margin * problem.gpu.memory_bytes
    sequences = count_text(problem.batch or 1, "sequence")
    words = (
        f"{problem.model.name} with {sequences} of {problem.sequence} tokens takes {needed / GIB:.1f} "
        f"GiB of {problem.gpu.name}, which may fill {room / GIB:.1f} GiB: {(needed - room) / GIB:.1f} GiB are missing"
    )
    if gpu_bytes(replace(problem, batch=1)) <= room:
        return f"{words}\nhint: the largest micro-batch that fits is {most_sequences(problem)}"
    three = replace(problem, stage="zero-3", batch=1)
    if gpu_bytes(three) <= room and host_bytes(problem) <= host_room(problem):
        return f"{words}\nhint: --stage zero-3 keeps the parameters on the host and fits"
    return f"{words}\nhint: take shorter sequences, --recompute, or a GPU with more memory"


def host_bytes(problem: TrainProblem) -> float:
    """What the host has to hold."""
    return problem.model.parameters * sum(state.held for state in STATES)


def host_room(problem: TrainProblem) -> float:
    """What the host's memories may hold."""
    return problem.host_margin * sum(tier.capacity_bytes for tier in problem.host.memories)


def _host_has_room(problem: TrainProblem) -> None:
    needed, room = host_bytes(problem), host_room(problem)
    if needed > room:
        most = room / sum(state.held for state in STATES) / 1e9
        message = (
            f"the optimizer's states of {problem.model.name} take {needed / GIB:.1f} GiB; {problem.host.name} may fill "
            f"{room / GIB:.1f} GiB: {(needed - room) / GIB:.1f} GiB are missing\n"
            f"hint: the largest model that fits these memories has {most:.1f} billion parameters"
        )
        raise PlacementError(message)
