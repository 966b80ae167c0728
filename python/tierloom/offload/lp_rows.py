"""The linear programme of inference: placement and batch at once.

The equations are those of FlexGen's cost model (arXiv 2303.06865, section 4) with one memory replaced by
N tiers, each with its own bandwidth, latency and capacity, and with the CPU's attention and the GPU's
copies drawing on the bandwidth of the same tier. Everything is divided by the batch b (Charnes and
Cooper 1962), which makes throughput linear in the unknowns: u = 1/b, weights w/b, KV k a sequence.
The optimum over continuous batch and placement is then that of one linear programme for each size of
GPU batch; `planner` rounds the batch.

Nothing here knows files or names of machines. `steps` computes the same times without a programme.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tierloom.linear_program import Programme, Terms
from tierloom.offload.problem import GPU, Problem

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tierloom.offload.host import Tier
    from tierloom.offload.kernel_policies import Shares

USUAL = 1e-2
"""Usual size of u, for the solver's scales."""

LONGEST = 1e-7
"""Least u: no block holds ten million sequences."""


@dataclass(frozen=True)
class Guess:
    """What the rows take as given: it depends on the batch in a way that is not linear.

    Attributes:
        batch: Batch for the share of experts that a step meets, and for products on the CPU.
        shares: Shares of the host tiers that a policy forces; none when placement is free.
    """

    batch: float
    shares: Shares | None = None


def w(part: str, place: str) -> str:
    """Variable: bytes of a part in a place, over b."""
    return f"w {part} {place}"


def k(place: str) -> str:
    """Variable: bytes of a sequence's KV cache in a place."""
    return f"k {place}"


def a(place: str) -> str:
    """Variable: bytes of a sequence's hidden states in a place."""
    return f"a {place}"


def programme(problem: Problem, gpu_batch: int, guess: Guess, batch: float | None = None) -> Programme:
    """The programme for one size of GPU batch.

    Args:
        problem: What is asked.
        gpu_batch: Sequences of a GPU batch, g.
        guess: What is taken as given.
        batch: Sequences of a block; free when none is given.
    """
    made = Programme()
    _variables(made, problem, gpu_batch, batch)
    _everything_is_somewhere(made, problem)
    if guess.shares is not None:
        _forced_shares(made, problem, guess.shares)
    _load_of_decode(made, problem, gpu_batch, guess)
    _cpu_of_decode(made, problem, guess)
    _gpu_of_decode(made, problem, gpu_batch)
    _decode(made, problem, gpu_batch, guess)
    _prefill(made, problem, guess)
    _capacity(made, problem, gpu_batch, forced=guess.shares is not None)
    made.minimise({"prefill": 1.0, "decode": problem.decode_steps})
    return made


def distance(problem: Problem, batch: float) -> Terms:
    """How far the mean byte is: 0 on the GPU, 1 in the nearest memory, 2 in the next. It decides between equals."""
    whole = problem.model.weight_bytes / batch + problem.kv_bytes + problem.hidden_bytes
    terms: Terms = {}
    for far, place in enumerate(problem.places):
        names = [*(w(part.name, place) for part in problem.model.parts), k(place), a(place)]
        terms |= dict.fromkeys(names, far / whole)
    return terms


def _variables(made: Programme, problem: Problem, gpu_batch: int, batch: float | None) -> None:
    low, high = (LONGEST, 1.0 / gpu_batch) if batch is None else (1.0 / batch, 1.0 / batch)
    made.variable("u", USUAL, low, high)
    for place in problem.places:
        for part in problem.model.parts:
            made.variable(w(part.name, place), part.bytes * USUAL)
        made.variable(k(place), problem.kv_bytes)
        made.variable(a(place), problem.hidden_bytes)
    for name in ("load", "move", "prefill", "decode"):
        made.variable(name)


def _everything_is_somewhere(made: Programme, problem: Problem) -> None:
    for part in problem.model.parts:
        terms = {w(part.name, place): 1.0 for place in problem.places}
        made.exactly(f"all of {part.name}", terms | {"u": -part.bytes}, 0.0)
    made.exactly("all of the KV cache", {k(place): 1.0 for place in problem.places}, problem.kv_bytes)
    made.exactly("all hidden states", {a(place): 1.0 for place in problem.places}, problem.hidden_bytes)
    for tier in problem.host.tiers:
        if tier.block:
            made.exactly(f"no hidden states on {tier.name}", {a(tier.name): 1.0}, 0.0)
        if problem.runtime.kv_on_gpu:
            made.exactly(f"no KV cache on {tier.name}", {k(tier.name): 1.0}, 0.0)
        elif tier.block and problem.runtime.cpu_attention:
            made.exactly(f"no attention on {tier.name}", {k(tier.name): 1.0}, 0.0)


def _forced_shares(made: Programme, problem: Problem, shares: Shares) -> None:
    """Host memory is filled as a policy says, whatever it holds; the GPU's share stays free."""
    for tier in problem.host.tiers[:-1]:
        of_weights, of_kv = shares.weights.get(tier.name, 0.0), shares.kv.get(tier.name, 0.0)
        for part in problem.model.parts:
            terms = {w(part.name, tier.name): 1.0, w(part.name, GPU): of_weights, "u": -of_weights * part.bytes}
            made.exactly(f"policy, {part.name} in {tier.name}", terms, 0.0)
        made.exactly(f"policy, KV in {tier.name}", {k(tier.name): 1.0, k(GPU): of_kv}, of_kv * problem.kv_bytes)
        made.exactly(f"policy, hidden in {tier.name}", {a(tier.name): 1.0, a(GPU): of_kv}, of_kv * problem.hidden_bytes)


def _streamed(problem: Problem, tier: Tier, tokens: float) -> Iterable[tuple[str, float, float]]:
    """Variables of weights in a tier that a pass reads: name, share that is read, grain of a copy."""
    for part in problem.model.parts:
        share = problem.stream_share(part, tokens)
        if share > 0.0:
            yield w(part.name, tier.name), share, problem.weight_grain(part)


def _verified(problem: Problem, guess: Guess) -> float:
    """Tokens that a decode step works on."""
    return guess.batch * problem.speculation.verified


def _copied(problem: Problem, tier: Tier, gpu_batch: int, guess: Guess) -> list[tuple[str, float, float]]:
    """What a decode step copies to the GPU from a tier: variable, share that is copied, grain."""
    found = [] if problem.runtime.cpu_weights else list(_streamed(problem, tier, _verified(problem, guess)))
    if not problem.runtime.cpu_attention:
        found.append((k(tier.name), problem.copied_share, problem.kv_grain(gpu_batch)))
    return found


def _load_of_decode(made: Programme, problem: Problem, gpu_batch: int, guess: Guess) -> None:
    """``load``: what a decode step copies; the link carries all of it, each tier gives its own.

    What a block device gives is read into host memory first: `Problem.staged_by_host`.
    """
    link: Terms = {"load": -1.0}
    for tier in problem.host.tiers:
        copied = _copied(problem, tier, gpu_batch, guess)
        link |= {name: share * problem.copy_s_per_byte(tier, grain) for name, share, grain in copied}
        terms = {name: share / tier.read_bytes_s for name, share, _ in copied}
        waited = {"load": 1.0, "decode": -1.0} if problem.staged_by_host(tier) else {"load": -1.0}
        made.at_most(f"decode: loads from {tier.name}", terms | waited, 0.0)
        per_pass = problem.hidden_moves * problem.speculation.verified / problem.computed
        link[a(tier.name)] = per_pass * problem.copy_s_per_byte(tier, problem.hidden_bytes)
    made.at_most("decode: GPU link", link, 0.0)


def _read_by_cpu(problem: Problem, tier: Tier, guess: Guess) -> Terms:
    """Bytes that a decode step's computing on the CPU moves in a tier, a sequence."""
    terms: Terms = {}
    if problem.runtime.cpu_attention and not tier.block:
        terms[k(tier.name)] = problem.runtime.amplification * problem.mean_share
    if problem.runtime.cpu_weights:
        terms |= {name: share for name, share, _ in _streamed(problem, tier, _verified(problem, guess))}
    return terms


def _cpu_of_decode(made: Programme, problem: Problem, guess: Guess) -> None:
    """``move``: what the CPU's own computing waits for memory, by each tier's bandwidth and by latency."""
    waits: Terms = {"move": -1.0}
    for tier in problem.host.tiers:
        read = _read_by_cpu(problem, tier, guess)
        terms = {name: factor / tier.read_bytes_s for name, factor in read.items()}
        made.at_most(f"decode: CPU reads {tier.name}", terms | {"move": -1.0}, 0.0)
        waits |= {name: factor * problem.latency_s_per_byte(tier) for name, factor in read.items() if not tier.block}
    made.at_most("decode: CPU waits", waits, 0.0)


def _cpu_products(problem: Problem, guess: Guess) -> Terms:
    """Seconds of the CPU's arithmetic in a decode step, a sequence."""
    runtime, verified = problem.runtime, problem.speculation.verified
    attention_s = verified * problem.mean_share * problem.attention_flop_per_byte / (runtime.attention_flop_s or 1.0)
    terms: Terms = {}
    for tier in problem.host.tiers:
        if runtime.cpu_attention and not tier.block:
            terms[k(tier.name)] = attention_s
        if runtime.cpu_weights:
            for part in problem.model.parts:
                flop = 2.0 * part.parameters * problem.stream_share(part, 1.0)
                terms[w(part.name, tier.name)] = flop * _verified(problem, guess) / part.bytes / runtime.product_flop_s
    return terms


def _gpu_of_decode(made: Programme, problem: Problem, gpu_batch: int) -> None:
    """The GPU's own work: products or reading the weights for them, and attention over KV cache it reads."""
    made.variable("gpu")
    over = [GPU] if problem.runtime.cpu_attention else list(problem.places)
    attended = {k(place): problem.mean_share / problem.gpu.memory_bytes_s for place in over}
    products = problem.speculation.verified * problem.model.flop_per_token / problem.gpu.decode_flop_s
    read, draft = problem.weight_read_s(gpu_batch), problem.draft_s(gpu_batch)
    made.at_most("decode: GPU products", attended | {"gpu": -1.0}, -products - draft)
    if problem.runtime.rereads:
        made.at_most("decode: GPU memory", attended | {"gpu": -1.0}, -read / gpu_batch - draft)
    else:
        made.at_most("decode: GPU memory", attended | {"gpu": -1.0, "u": read}, -draft)


def _decode(made: Programme, problem: Problem, gpu_batch: int, guess: Guess) -> None:
    """``decode``: the step, its parts one after the other or at the same time."""
    products = _cpu_products(problem, guess)
    if not problem.runtime.overlapped:
        made.at_most("decode: step", products | {"load": 1.0, "move": 1.0, "gpu": 1.0, "decode": -1.0}, 0.0)
        return
    made.at_most("decode: step, CPU", products | {"decode": -1.0}, 0.0)
    for piece in ("load", "move", "gpu"):
        made.at_most(f"decode: step, {piece}", {piece: 1.0, "decode": -1.0}, 0.0)
    for tier in problem.host.tiers:
        shared = _read_by_cpu(problem, tier, guess)
        for name, share, _ in _copied(problem, tier, gpu_batch, guess):
            shared[name] = shared.get(name, 0.0) + share
        terms = {name: factor / tier.read_bytes_s for name, factor in shared.items()}
        made.at_most(f"decode: all of {tier.name}", terms | {"decode": -1.0}, 0.0)
    _fabric(made, problem, gpu_batch, guess)


def _fabric(made: Programme, problem: Problem, gpu_batch: int, guess: Guess) -> None:
    """The root complex carries the GPU's loads and the CPU's reads of CXL memory; a peer's loads pass by."""
    if problem.host.fabric_bytes_s is None:
        return
    terms: Terms = {"decode": -1.0}
    for tier in problem.host.tiers:
        crossing = _read_by_cpu(problem, tier, guess) if tier.kind == "cxl" else {}
        if tier.route == "root":
            for name, share, _ in _copied(problem, tier, gpu_batch, guess):
                crossing[name] = crossing.get(name, 0.0) + share
        terms |= {name: factor / problem.host.fabric_bytes_s for name, factor in crossing.items()}
    made.at_most("decode: root complex", terms, 0.0)


def _prefill(made: Programme, problem: Problem, guess: Guess) -> None:
    """``prefill``: loads, products, and stores of the KV cache, all at the same time."""
    passes, tokens = problem.prefill_passes(guess.batch), problem.pass_tokens(guess.batch)
    waited: Terms = {a(tier.name): problem.hidden_wait_s_per_byte(tier) for tier in problem.host.tiers}
    made.at_most("prefill: GPU", waited | {"prefill": -1.0}, -problem.prefill_flop / problem.gpu.prefill_flop_s)
    link: Terms = {"prefill": -1.0}
    back: Terms = {"prefill": -1.0}
    staged: Terms = waited | {"prefill": -1.0}
    moves, written = problem.hidden_moves, problem.prompt_share
    if problem.runtime.continuous:
        made.at_most("prefill: GPU memory", {"prefill": -1.0}, -problem.prefill_read_s(guess.batch) / guess.batch)
    for tier in problem.host.tiers:
        loaded = [(name, passes * share, grain) for name, share, grain in _streamed(problem, tier, tokens)]
        link |= {name: share * problem.copy_s_per_byte(tier, grain) for name, share, grain in loaded}
        link[a(tier.name)] = moves * problem.copy_s_per_byte(tier, problem.hidden_bytes)
        back |= {k(tier.name): written / _out(problem), a(tier.name): moves / _out(problem)}
        staged[k(tier.name)] = written / problem.staged_bytes_s(tier)
        shared = {name: share / tier.read_bytes_s for name, share, _ in loaded}
        shared[k(tier.name)] = written / tier.write_bytes_s
        shared[a(tier.name)] = moves * (1.0 / tier.read_bytes_s + 1.0 / tier.write_bytes_s)
        made.at_most(f"prefill: all of {tier.name}", shared | {"prefill": -1.0}, 0.0)
    made.at_most("prefill: GPU link in", link, 0.0)
    made.at_most("prefill: GPU link out", back, 0.0)
    for tier in (tier for tier in problem.host.tiers if problem.staged_by_host(tier)):
        read = {name: passes * share / tier.read_bytes_s for name, share, _ in _streamed(problem, tier, tokens)}
        both = {name: link.get(name, 0.0) + read.get(name, 0.0) for name in link | read}
        made.at_most(f"prefill: through the host from {tier.name}", both, 0.0)
        stored = back | {k(tier.name): back[k(tier.name)] + written / tier.write_bytes_s}
        made.at_most(f"prefill: through the host to {tier.name}", stored, 0.0)
    if problem.runtime.staged:
        made.at_most("prefill: staged stores", staged, -problem.prefill_apart_s)


def _out(problem: Problem) -> float:
    return problem.gpu.out_gb_s * 1e9


def _held(problem: Problem, place: str) -> Terms:
    """Bytes in a place, over b."""
    terms = {w(part.name, place): 1.0 for part in problem.model.parts}
    return terms | {k(place): 1.0, a(place): 1.0}


def _capacity(made: Programme, problem: Problem, gpu_batch: int, *, forced: bool) -> None:
    """Nothing holds more than its margin allows. A policy's shares respect each tier, so then the sum is held."""
    runtime, gpu = problem.runtime, problem.gpu
    buffers = 2.0 * problem.model.layer_bytes
    terms = _held(problem, GPU)
    for part in problem.model.parts:
        terms[w(part.name, GPU)] -= buffers / problem.model.weight_bytes
    terms["u"] = buffers + problem.gpu_work_bytes(gpu_batch) - runtime.gpu_margin * gpu.memory_bytes
    made.at_most("capacity of gpu", terms, -problem.draft_kv_bytes)
    room: Terms = {}
    for tier in problem.host.tiers:
        held = _held(problem, tier.name)
        staging = problem.staging_bytes(gpu_batch) if tier is problem.host.tiers[0] else 0.0
        held["u"] = staging - runtime.host_margin * tier.capacity_bytes
        if forced:
            room = held | room | {"u": room.get("u", 0.0) + held["u"]}
        else:
            made.at_most(f"capacity of {tier.name}", held, 0.0)
    if forced:
        made.at_most("capacity of the host", room, 0.0)
