"""The clock: how long prefill and a decode step take under a given placement.

It states the model of execution plainly, in bytes and seconds of a whole block, without a linear
programme; `planner` holds its plans against it, and every placement that did not come from the
programme (a policy's, a published one, whole layers) is timed here.

Loads from several tiers run at the same time, as they do when pages are interleaved or when more than
one layer is prefetched: the link carries their sum, each tier gives its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tierloom.offload.placement import Placement
from tierloom.offload.problem import GPU, Problem

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tierloom.offload.host import Tier


@dataclass(frozen=True, kw_only=True)
class Steps:
    """Times of one block, s.

    Attributes:
        prefill_s: Prefill of all prompts.
        decode_s: One decode step of all sequences, at the mean length.
        total_s: Prefill and all decode steps.
        tokens_s: Tokens generated per second of the total.
        prefill: Seconds of each piece of prefill; the longest is what counts.
        decode: Seconds of each piece of a decode step, which add up or overlap as the runtime does.
    """

    prefill_s: float
    decode_s: float
    total_s: float
    tokens_s: float
    prefill: Mapping[str, float]
    decode: Mapping[str, float]

    @property
    def prefill_bound(self) -> str:
        """The piece that prefill waits for."""
        return max(self.prefill, key=lambda piece: self.prefill[piece])

    @property
    def decode_bound(self) -> str:
        """The longest piece of a decode step."""
        return max(self.decode, key=lambda piece: self.decode[piece])


def steps(problem: Problem, placement: Placement) -> Steps:
    """Times a placement."""
    prefill, decode = _prefill(problem, placement), _decode(problem, placement)
    prefill_s = max(prefill.values())
    decode_s = _step(problem, placement, decode)
    total_s = prefill_s + problem.decode_steps * decode_s
    tokens_s = placement.batch * problem.generate / total_s
    return Steps(
        prefill_s=prefill_s, decode_s=decode_s, total_s=total_s, tokens_s=tokens_s, prefill=prefill, decode=decode
    )


def _streams(problem: Problem, placement: Placement, tier: Tier, tokens: float) -> tuple[float, float]:
    """Bytes of weights that one pass copies from a tier, and what the link takes for them, s."""
    amount = seconds = 0.0
    for part in problem.model.parts:
        read = placement.weights[part.name].get(tier.name, 0.0) * problem.stream_share(part, tokens)
        if read > 0.0:
            amount += read
            seconds += read * problem.copy_s_per_byte(tier, problem.weight_grain(part))
    return amount, seconds


def _prefill(problem: Problem, placement: Placement) -> dict[str, float]:
    passes = problem.prefill_passes(placement.batch)
    link_in = link_out = staged = waited = 0.0
    through: list[tuple[str, float, float]] = []
    pieces = {"GPU": placement.batch * problem.prefill_flop / problem.gpu.prefill_flop_s}
    if problem.runtime.continuous:
        pieces["GPU memory"] = problem.prefill_read_s(placement.batch)
    for tier in problem.host.tiers:
        once, once_s = _streams(problem, placement, tier, problem.pass_tokens(placement.batch))
        amount, seconds = passes * once, passes * once_s
        hidden = problem.hidden_moves * placement.hidden.get(tier.name, 0.0)
        waited += placement.hidden.get(tier.name, 0.0) * problem.hidden_wait_s_per_byte(tier)
        stored = problem.prompt_share * placement.kv.get(tier.name, 0.0)
        link_in += seconds + hidden * problem.copy_s_per_byte(tier, problem.hidden_bytes)
        link_out += (stored + hidden) / (problem.gpu.out_gb_s * 1e9)
        staged += stored / problem.staged_bytes_s(tier)
        read, write = (amount + hidden) / tier.read_bytes_s, (stored + hidden) / tier.write_bytes_s
        pieces[tier.name] = read + write
        if problem.staged_by_host(tier):
            through.append((tier.name, read, write))
    pieces["GPU"] += waited
    pieces |= {"GPU link in": link_in, "GPU link out": link_out}
    if problem.runtime.staged:
        pieces["staged stores"] = staged + placement.batch * problem.prefill_apart_s + waited
    for name, read, write in through:
        pieces[f"through the host, {name}"] = max(link_in + read, link_out + write)
    return pieces


def _decode(problem: Problem, placement: Placement) -> dict[str, float]:
    """Pieces of a decode step: the load, the CPU's arithmetic, its memory, the GPU."""
    copied = {tier.name: _copied(problem, placement, tier) for tier in problem.host.tiers}
    moved = {tier.name: _moved(problem, placement, tier) for tier in problem.host.tiers}
    tiers = problem.host.tiers
    pieces = {"GPU link": sum(seconds for _, seconds in copied.values())}
    for tier in tiers:
        pieces[f"loads from {tier.name}"] = copied[tier.name][0] / tier.read_bytes_s
        pieces[f"CPU reads {tier.name}"] = moved[tier.name] / tier.read_bytes_s
    pieces["CPU waits"] = sum(moved[tier.name] * problem.latency_s_per_byte(tier) for tier in tiers if not tier.block)
    pieces["CPU arithmetic"] = _arithmetic(problem, placement)
    pieces["GPU"] = _gpu(problem, placement)
    return pieces


def _step(problem: Problem, placement: Placement, pieces: Mapping[str, float]) -> float:
    """One decode step from its pieces."""
    tiers = problem.host.tiers
    through = [tier for tier in tiers if problem.staged_by_host(tier)]
    load = max(pieces["GPU link"], *(pieces[f"loads from {tier.name}"] for tier in tiers if tier not in through))
    move = max(pieces["CPU waits"], *(pieces[f"CPU reads {tier.name}"] for tier in tiers))
    if not problem.runtime.overlapped:
        computing = move + pieces["CPU arithmetic"] + pieces["GPU"]
        return load + max(computing, *(pieces[f"loads from {tier.name}"] for tier in through), 0.0)
    both = (pieces[f"loads from {tier.name}"] + pieces[f"CPU reads {tier.name}"] for tier in tiers)
    return max(load, move, pieces["CPU arithmetic"], pieces["GPU"], *both, _fabric(problem, placement))


def _copied(problem: Problem, placement: Placement, tier: Tier) -> tuple[float, float]:
    """Bytes that a decode step copies from a tier to the GPU, and what the link takes for them, s."""
    amount = seconds = 0.0
    if not problem.runtime.cpu_weights:
        amount, seconds = _streams(problem, placement, tier, placement.batch * problem.speculation.verified)
    if not problem.runtime.cpu_attention:
        cache = problem.copied_share * placement.kv.get(tier.name, 0.0)
        amount += cache
        seconds += cache * problem.copy_s_per_byte(tier, problem.kv_grain(placement.gpu_batch))
    per_pass = problem.hidden_moves * problem.speculation.verified / problem.computed
    hidden = per_pass * placement.hidden.get(tier.name, 0.0)
    return amount, seconds + hidden * problem.copy_s_per_byte(tier, problem.hidden_bytes)


def _moved(problem: Problem, placement: Placement, tier: Tier) -> float:
    """Bytes that the CPU's own computing moves in a tier in a decode step."""
    amount = 0.0
    if problem.runtime.cpu_attention:
        again = 1.0 if tier.block else problem.runtime.amplification  # from a block device it is read once
        amount += again * problem.mean_share * placement.kv.get(tier.name, 0.0)
    if problem.runtime.cpu_weights:
        amount += sum(
            placement.weights[part.name].get(tier.name, 0.0)
            * problem.stream_share(part, placement.batch * problem.speculation.verified)
            for part in problem.model.parts
        )
    return amount


def _arithmetic(problem: Problem, placement: Placement) -> float:
    seconds, verified = 0.0, problem.speculation.verified
    on_host = sum(amount for place, amount in placement.kv.items() if place != GPU)
    if problem.runtime.cpu_attention:
        flop = verified * problem.mean_share * on_host * problem.attention_flop_per_byte
        seconds += flop / problem.runtime.attention_flop_s
    if problem.runtime.cpu_weights:
        for part in problem.model.parts:
            here = 1.0 - placement.weights[part.name].get(GPU, 0.0) / part.bytes
            flop = 2.0 * part.parameters * problem.stream_share(part, 1.0) * placement.batch * verified
            seconds += here * flop / problem.runtime.product_flop_s
    return seconds


def _gpu(problem: Problem, placement: Placement) -> float:
    """Products of the block or reading the weights for them, and attention over KV cache the GPU reads."""
    model, gpu, batch = problem.model, problem.gpu, placement.batch
    passes = batch / placement.gpu_batch if problem.runtime.rereads else 1.0
    products = batch * problem.speculation.verified * model.flop_per_token / gpu.decode_flop_s
    drafting = batch * problem.draft_s(placement.gpu_batch)
    attended = placement.kv.get(GPU, 0.0) if problem.runtime.cpu_attention else sum(placement.kv.values())
    reads = passes * problem.weight_read_s(placement.gpu_batch)
    return drafting + max(products, reads) + problem.mean_share * attended / gpu.memory_bytes_s


def _fabric(problem: Problem, placement: Placement) -> float:
    if problem.host.fabric_bytes_s is None:
        return 0.0
    crossing = 0.0
    for tier in problem.host.tiers:
        if tier.kind == "cxl":
            crossing += _moved(problem, placement, tier)
        if tier.route == "root":
            crossing += _copied(problem, placement, tier)[0]
    return crossing / problem.host.fabric_bytes_s
