"""The shapes of the documents that ``tierloom offload … --json`` prints.

Keys carry their unit: ``_bytes``, ``_s``, ``_gb_s`` (GB is 10^9 bytes); ``tokens_s`` is tokens per second.
Where a value is by place, the places are ``gpu`` and the machine's memories.
"""

from __future__ import annotations

from typing import NotRequired, TypedDict


class PlaceDoc(TypedDict):
    """What one place holds; `allowed_bytes` is its margin of `capacity_bytes`."""

    place: str
    weights_bytes: float
    kv_bytes: float
    hidden_bytes: float
    buffer_bytes: float
    allowed_bytes: float
    capacity_bytes: float


class WholeDoc(TypedDict):
    """The plan of whole tensors: by part, how many in each place, and of how many; throughput, loss by it."""

    tensors: dict[str, dict[str, int]]
    of: dict[str, int]
    tokens_s: float
    loss: float


TIED = 0.005
"""Two plans within this share of each other are said to tie: a tenth of what the model's figures are worth."""


class TieDoc(TypedDict):
    """Why a policy ties with the plan.

    `ceiling_tokens_s` is what the plan's block would reach with infinitely fast memories, which no placement
    passes; `room` how far the plan is below it, a share; `bound` what is waited for then; `best_tokens_s` the
    most that any placement of the policy's own block reaches.
    """

    ceiling_tokens_s: float
    room: float
    bound: str
    best_tokens_s: float


class RivalDoc(TypedDict):
    """What another policy brings; `against` is by how much the plan is faster, a share; or why it cannot."""

    policy: str
    tie: NotRequired[TieDoc]
    problem: NotRequired[str]
    tokens_s: NotRequired[float]
    batch: NotRequired[int]
    gpu_batch: NotRequired[int]
    against: NotRequired[float]
    places: NotRequired[list[PlaceDoc]]


class AdviceDoc(TypedDict):
    """What limits the plan: tokens/s a GiB by place, and share of throughput a share of a resource."""

    phase: str
    tokens_s_per_gib: dict[str, float]
    share_per_share: dict[str, float]


class GoalDoc(TypedDict):
    """What was asked for: ``users``, ``limits``, ``throughput``, or ``table`` where nothing was."""

    kind: str
    users: int | None
    ttft_s: float | None
    tokens_s_user: float | None


class UsersDoc(TypedDict):
    """What each of so many users gets, and where weights and KV cache are then.

    `ttft_s` is the time to the first token behind the others, `ttft_alone_s` where nobody else asks, `ttft_last_s`
    of the last where all ask at once; `quiet_tokens_s_user` is a user's speed while no prompt is prefilled;
    `tokens_s` is of all together.
    """

    users: int
    tokens_s_user: float
    quiet_tokens_s_user: float
    ttft_s: float
    ttft_alone_s: float
    ttft_last_s: float
    tokens_s: float
    weights_bytes: dict[str, float]
    kv_bytes: dict[str, float]
    knee: NotRequired[bool]


class CapacityDoc(TypedDict):
    """The best plan with another capacity of one tier, `share` of its own; no throughput where nothing fits."""

    tier: str
    share: float
    capacity_bytes: float
    tokens_s: float | None
    batch: int | None


class InferDoc(TypedDict):
    """``offload infer``: the answer and its plan, in the order of the report.

    `table` has a row for each number of users where no goal was given; the plan is that of its knee. `prompt` and
    `generate` are mean lengths. `capacities` is there under ``--plot``.
    """

    answer: str
    goal: GoalDoc
    users: UsersDoc
    table: list[UsersDoc]
    why_runtime: str
    tool: str | None
    model: str
    parameters: int
    weight_bytes: float
    kv_bytes_per_token: float
    gpu: str
    machine: str
    socket: str
    tiers: list[str]
    runtime: str
    prompt: int
    generate: int
    longest_request: int
    shared_prefix: int
    tokens_a_step: float
    policy: str
    batch: int
    gpu_batch: int
    gpu_batches: int
    tokens_s: float
    low_tokens_s: float
    high_tokens_s: float
    bound_tokens_s: float | None
    prefill_s: float
    decode_step_s: float
    total_s: float
    prefill_bound: str
    decode_bound: str
    prefill_pieces_s: dict[str, float]
    decode_pieces_s: dict[str, float]
    places: list[PlaceDoc]
    weights_bytes: dict[str, dict[str, float]]
    kv_bytes: dict[str, float]
    whole_tensors: WholeDoc
    policies: list[RivalDoc]
    advice: AdviceDoc | None
    programmes: int
    assumptions: list[str]
    capacities: NotRequired[list[CapacityDoc]]


class TrainPolicyDoc(TypedDict):
    """One policy's step: seconds by piece, share of each state in each tier, bytes by tier; or why not."""

    policy: str
    problem: NotRequired[str]
    step_s: NotRequired[float]
    tokens_s: NotRequired[float]
    against: NotRequired[float]
    pieces_s: NotRequired[dict[str, float]]
    shares: NotRequired[dict[str, dict[str, float]]]
    held_bytes: NotRequired[dict[str, float]]


class TrainDoc(TypedDict):
    """``offload train``: the plan first among the policies."""

    model: str
    parameters: int
    gpu: str
    machine: str
    tiers: list[str]
    stage: str
    sequence: int
    batch: int
    accumulate: int
    recompute: bool
    gpu_bytes: float
    host_bytes: float
    deepspeed_estimate_bytes: float
    policies: list[TrainPolicyDoc]
    assumptions: list[str]


class SessionsDoc(TypedDict):
    """One tier as a store of sessions' caches."""

    tier: str
    capacity: int
    sessions: int
    fetch_s: float
    worth: bool


class ServeDoc(TypedDict):
    """``offload serve``: idle sessions over tiers, and what fetching takes against computing again."""

    model: str
    gpu: str
    machine: str
    context: int
    sessions: int
    session_bytes: float
    recompute_s: float
    break_even_gb_s: float
    mean_s: float
    tiers: list[SessionsDoc]


class RatioDoc(TypedDict):
    """Decode on the CPU under one ratio of interleaving; or why not."""

    pages: dict[str, int]
    problem: NotRequired[str]
    tokens_s: NotRequired[float]
    gb_s: NotRequired[float]
    latency_ns: NotRequired[float]
    bound: NotRequired[str]


class CpuDoc(TypedDict):
    """``offload cpu``: ratios of interleaving, the best by name."""

    model: str
    machine: str
    threads: int
    backends: int
    context: int
    ratios: list[RatioDoc]
    best: dict[str, int]
