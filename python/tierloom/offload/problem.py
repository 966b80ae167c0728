"""What is asked of the inference planner, and the coefficients that follow from it.

Where the equations of `rows` (the linear programme) and of `steps` (the clock that checks it) take the
same number, such as what a copy costs a byte, it is said here once.

Symbols of the equations: s tokens of prompt, n generated, S = s + n; b sequences in the block, g in one
GPU batch; W weights, K = KV cache of one sequence at S, H hidden states of one sequence. Where lengths
vary, s and n are means. Of a prefix of p tokens that all prompts share, K has 1/b, and prefill nothing;
windows and states are not shared.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tierloom.errors import RequestError
from tierloom.offload import speculation
from tierloom.offload.lengths import ALIKE, Variation
from tierloom.units import LINE_BYTES

if TYPE_CHECKING:
    from tierloom.offload.gpu import Gpu
    from tierloom.offload.host import Host, Tier
    from tierloom.offload.model import Model, Part
    from tierloom.offload.runtime import Runtime
    from tierloom.offload.speculation import Speculation

GPU = "gpu"
"""Name of the place that is not a tier of the host."""

ATTENTION = "attention"
"""Name of the part of a model that attends."""

COPY_THREADS = 2
"""Staged copies under way: the keys and the values of a layer. FlexGen has four threads, and waits for these two."""

GPU_BATCHES = (1, 2, 3, 4, 8, 16, 32, 64, 128, 256)
"""Sequences of a GPU batch that are tried."""


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One question to the inference planner.

    Attributes:
        model: What is served.
        gpu: What it is served on.
        host: What holds the rest.
        runtime: How it executes, with its rates for the host's cores.
        prompt: Tokens of each prompt, s.
        generate: Tokens generated for each, n.
        batch: Sequences of a block, or users in flight, when that is fixed.
        variation: How far requests are from the mean one.
        shared: Tokens at the start of all prompts that are the same, p: computed before, stored once.
        speculation: What is drafted and verified in a step.
    """

    model: Model
    gpu: Gpu
    host: Host
    runtime: Runtime
    prompt: int
    generate: int
    batch: int | None = None
    variation: Variation = ALIKE
    shared: int = 0
    speculation: Speculation = speculation.NONE

    @property
    def places(self) -> tuple[str, ...]:
        """Where data can be: the GPU, then the tiers, nearest first."""
        return (GPU, *(tier.name for tier in self.host.tiers))

    @property
    def computed(self) -> int:
        """Tokens of a prompt that prefill computes, s - p."""
        return self.prompt - self.shared

    @property
    def reserved_tokens(self) -> float:
        """Tokens that memory is kept for, a sequence, S: all of its prompt and its answer."""
        return self.variation.reserved(self.prompt + self.generate, self.batch)

    @property
    def stored_tokens(self) -> float:
        """Tokens that are stored, a sequence, with its part of the shared prefix."""
        return self.reserved_tokens - self.shared + (self.shared / self.batch if self.batch else 0.0)

    @property
    def kv_bytes(self) -> float:
        """KV cache of one sequence at its full length, K."""
        return self._kept_bytes(self.model)

    def _kept_bytes(self, model: Model) -> float:
        """Cache that a model keeps of one sequence: the prefix once for all where it grows, states for each."""
        again = self.shared - (self.shared / self.batch if self.batch else 0.0)
        return model.cache_bytes(self.reserved_tokens) - model.kv_bytes_per_token * again

    @property
    def hidden_bytes(self) -> float:
        """Hidden states of one sequence between two layers in prefill, H."""
        return self.model.hidden * self.model.element_bytes * self.computed

    @property
    def hidden_moves(self) -> int:
        """How often hidden states move each way in a pass: after each layer, or after each half of one."""
        return self.model.layers * (2 if self.runtime.halves else 1)

    @property
    def prompt_share(self) -> float:
        """Share of the KV cache that prefill writes, s / S where all positions are kept."""
        prefix = self.model.kv_bytes_per_token * self.shared
        return (self.model.cache_bytes(self.prompt) - prefix) / self.kv_bytes

    @property
    def mean_share(self) -> float:
        """Share of the KV cache that a decode step reads on average, (s + n/2) / S where all is looked at.

        Above 1 where a prefix that is stored once is read for each sequence.
        """
        return self.model.read_bytes(self.mean_tokens) / self.kv_bytes

    @property
    def mean_tokens(self) -> float:
        """Tokens that a decode step finds before it on average, s + n/2.

        Long answers are in flight for longer, so where they vary the mean is s + E[n^2] / 2 E[n].
        """
        return self.prompt + self.generate / 2 * self.variation.answer_squares

    @property
    def copied_share(self) -> float:
        """Share of the KV cache that a decode step copies where it is copied: the shared prefix once at most.

        Of a sparse cache each sequence chooses as much of the prefix as of the rest, others than its neighbours do.
        """
        once, prefix = self.shared / self.batch if self.batch else 0.0, self.shared / self.mean_tokens
        again = sum(
            cache.position_bytes * max(0.0, cache.looked(self.mean_tokens) * prefix - once)
            for cache in self.model.caches
            if not cache.window
        )
        return self.mean_share - again / self.kv_bytes

    @property
    def decode_steps(self) -> float:
        """Decode steps of an answer; its first token is prefill's."""
        return (self.generate - 1) / self.speculation.expected

    def prefill_passes(self, batch: float) -> float:
        """Passes over the weights in the prefill of a block: one of all its prompts, or one for each prompt's chunk."""
        if not self.runtime.continuous:
            return 1.0
        return batch * math.ceil(self.computed / self.runtime.chunk_tokens)

    def pass_tokens(self, batch: float) -> float:
        """Tokens of one of these passes."""
        return batch * self.computed / self.prefill_passes(batch)

    def prefill_read_s(self, batch: float) -> float:
        """Seconds in which the GPU reads all weights from its own memory, once a pass of prefill."""
        if not self.runtime.continuous:
            return 0.0
        tokens, passes = self.pass_tokens(batch), self.prefill_passes(batch)
        read = sum(part.bytes * self.stream_share(part, tokens) for part in self.model.parts)
        return passes * read / (self.gpu.memory_gb_s * 1e9)

    @property
    def attention_flop_per_byte(self) -> float:
        """Operations that attention does for each byte of KV cache that it reads."""
        return self.model.attention_flop(self.mean_tokens) / self.model.read_bytes(self.mean_tokens)

    @property
    def prefill_flop(self) -> float:
        """Operations of one sequence's prefill; scores over the whole square where a matrix of them is held.

        Tokens after a shared prefix look back at it, too: it takes from the triangle what it would have itself.
        """
        lengths = self.variation.prompts(self.prompt)
        looks = sum(share * self.model.prefill_attention_flop(length) for length, share in lengths)
        scores = looks - self.model.prefill_attention_flop(self.shared)
        return self.computed * self.model.flop_per_token + scores * (2.0 if self.runtime.score_matrix else 1.0)

    @property
    def prefill_apart_s(self) -> float:
        """Seconds of a sequence's prefill on the GPU that hide no stores: all but attention, where halves are apart."""
        attention = sum(2.0 * part.parameters for part in self.model.parts if part.name == ATTENTION)
        if not self.runtime.halves or not attention:
            return 0.0
        return self.computed * (self.model.flop_per_token - attention) / self.gpu.prefill_flop_s

    def stream_share(self, part: Part, tokens: float) -> float:
        """Share of a part that a pass over `tokens` tokens reads."""
        return self.model.active_share(part, tokens)

    def copy_s_per_byte(self, tier: Tier, grain: float) -> float:
        """Seconds of the GPU's link that a byte takes, copied from a tier in pieces of `grain` bytes."""
        return copy_s_per_byte(self.gpu, tier, grain)

    def weight_grain(self, part: Part) -> float:
        """Bytes of one tensor of a part: what is copied at a time."""
        return part.bytes / (part.layers * part.tensors)

    def kv_grain(self, gpu_batch: int) -> float:
        """Bytes of KV cache of one layer and GPU batch."""
        return self.kv_bytes * gpu_batch / self.model.layers

    def staged_by_host(self, tier: Tier) -> bool:
        """Whether a copy from a tier is read into host memory first, and only then goes over the GPU's link.

        FlexGen's execution (arXiv 2303.06865, section 4.3): ``max(ctog + dtoc, gtoc + ctod, comp)`` in prefill,
        ``ctog + max(dtoc, comp)`` in decode. Where a runtime overlaps everything, so it does these.
        """
        return tier.block and not self.runtime.overlapped

    def staged_bytes_s(self, tier: Tier) -> float:
        """What staged copies reach: over the link into a buffer, then by threads with lines in flight to the tier.

        A block device takes whole buffers, as fast as it writes.
        """
        lines_s = math.inf if tier.block else COPY_THREADS * self.host.lines / tier.idle_s
        stored_s = min(tier.write_bytes_s, lines_s * LINE_BYTES)
        return 1.0 / (1.0 / stored_s + 1.0 / (self.gpu.out_gb_s * 1e9))

    def hidden_wait_s_per_byte(self, tier: Tier) -> float:
        """Seconds that the GPU's work waits in prefill for each byte of hidden states in a tier: to it and back.

        FlexGen copies them on the stream that computes (`load_hidden`, `store_hidden` of its `flex_opt.py`).
        """
        if not self.runtime.halves:
            return 0.0
        both = self.copy_s_per_byte(tier, self.hidden_bytes) + 1.0 / (self.gpu.out_gb_s * 1e9)
        return self.hidden_moves * both

    def latency_s_per_byte(self, tier: Tier) -> float:
        """Seconds a byte that all cores together take when each keeps its lines in flight."""
        return tier.idle_s / (self.host.cores * self.host.lines * LINE_BYTES)

    def gpu_work_bytes(self, gpu_batch: int) -> float:
        """GPU memory for the work on one GPU batch, weights not counted.

        FlexGen's peak of prefill, ``g (20 s h + 2 heads s^2 + 2 s ffn)`` in 16 bits
        (`experimental/cost_model.py`); where no score matrix is held, without its term and for at
        most one chunk of tokens. Where the CPU does not attend, two layers of KV cache pass through.
        """
        model, runtime = self.model, self.runtime
        tokens: float = gpu_batch * self.computed
        if not runtime.score_matrix:
            tokens = min(tokens, max(runtime.chunk_tokens, gpu_batch * self.speculation.verified))
        work = tokens * (10 * model.hidden + model.ffn) * model.element_bytes
        if runtime.score_matrix:
            work += gpu_batch * model.heads * self.prompt**2 * model.element_bytes
        if not runtime.cpu_attention and not runtime.kv_on_gpu:
            work += 2 * self.kv_grain(gpu_batch)
        return work + self.speculation.draft_bytes

    @property
    def draft_kv_bytes(self) -> float:
        """GPU memory for the draft's own KV cache of one sequence."""
        return self._kept_bytes(self.speculation.draft) if self.speculation.draft else 0.0

    def draft_s(self, gpu_batch: int) -> float:
        """Seconds that the GPU drafts in a decode step, a sequence."""
        return self.speculation.draft_s(self.gpu, gpu_batch) / gpu_batch

    def weight_read_s(self, gpu_batch: int) -> float:
        """Seconds in which the GPU reads the weights of one pass over a GPU batch from its own memory."""
        tokens = gpu_batch * self.speculation.verified
        read = sum(part.bytes * self.stream_share(part, tokens) for part in self.model.parts)
        return read / (self.gpu.memory_gb_s * 1e9)

    def staging_bytes(self, gpu_batch: int) -> float:
        """Host memory for staged copies: a layer, and the hidden states of a GPU batch."""
        return self.model.layer_bytes + self.hidden_bytes * gpu_batch if self.runtime.staged else 0.0


def copy_s_per_byte(gpu: Gpu, tier: Tier, grain: float) -> float:
    """What a byte of a copy costs: the link, and its part of the copy's fixed time and extra latency, s."""
    return 1.0 / (gpu.in_gb_s * 1e9) + (gpu.copy_ns * 1e-9 + tier.gpu_extra_s) / grain


def check(problem: Problem) -> None:
    """Refuses a question that has no meaning.

    Raises:
        RequestError: A number is not above 0, the context is longer than the model's, or it has no decoder.
    """
    numbers = {"prompt": problem.prompt, "generate": problem.generate, "batch": problem.batch}
    for name, value in numbers.items():
        if value is not None and value < 1:
            message = f"the {name} is {value}\nhint: it has to be at least 1"
            raise RequestError(message)
    if not 0 <= problem.shared < problem.prompt:
        message = (
            f"a shared prefix of {problem.shared} tokens, and prompts of {problem.prompt}\n"
            "hint: it is the start of every prompt, and each has at least one token of its own"
        )
        raise RequestError(message)
    if problem.model.family == "bert":
        message = f"{problem.model.name} is an encoder: it generates nothing\nhint: ask `offload train` about it"
        raise RequestError(message)
