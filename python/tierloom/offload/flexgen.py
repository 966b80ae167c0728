"""The published tier-blind planner: FlexGen's cost model and search, from their equations.

Source: Sheng et al., FlexGen, ICML 2023 (arXiv 2303.06865), section 4.3 and appendix, with the terms and
constants that `experimental/cost_model.py` of FMInference/FlexiGen ships (Apache-2.0, read at d5fdcdc).
Host memory is one thing here, whatever it is made of; that is what tier-blind means. The model knows
the shape of OPT only: two matrices in a feed-forward block, as many key heads as query heads.

Sizes are bytes, rates bytes or operations per second, GiB = 2^30 as in the original.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tierloom.linear_program import Programme, Terms
from tierloom.units import GIB

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tierloom.linear_program import Solution
    from tierloom.offload.problem import Problem

TERA = 1e12


@dataclass(frozen=True, kw_only=True)
class Constants:
    """What FlexGen fitted on a Google Cloud T4, its defaults. Bandwidths GiB/s, rates TFLOP/s."""

    to_gpu: float = 12.89
    cache_to_cpu: float = 0.97
    hidden_to_cpu: float = 4.82
    from_disk: float = 0.473
    cache_to_disk: float = 0.746
    hidden_to_disk: float = 2.015
    products_prefill: float = 21.24
    products_decode: float = 4.3
    scores_prefill: float = 9.97
    scores_decode: float = 0.079
    cpu: float = 0.0123
    c1: float = 0.0168
    c2: float = 0.0328
    c3: float = 0.0621
    alpha: float = 0.8

    def cpu_flop_s(self, gpu_batch: int, hidden: int) -> float:
        """Rate of CPU attention; it falls for small batches and narrow models."""
        x, y = max(0.0, math.log2(64 / gpu_batch)), max(0.0, math.log2(4096 / hidden))
        return self.cpu * TERA * max(0.1, 1.0 + self.c1 * x * y - self.c2 * x - self.c3 * y)


@dataclass(frozen=True, kw_only=True)
class Shape:
    """A model as the published cost model knows it, and a request.

    Attributes:
        layers: l.
        hidden: h1.
        ffn: h2.
        heads: nh.
        prompt: s.
        generate: n.
        layer_bytes: Weights of a layer; ``8 h1^2 + 4 h1 h2`` in the original.
        kv_bytes: KV cache of one token and layer; ``4 h1`` in the original.
    """

    layers: int
    hidden: int
    ffn: int
    heads: int
    prompt: int
    generate: int
    layer_bytes: float
    kv_bytes: float


def opt_shape(layers: int, hidden: int, ffn: int, heads: int, prompt: int, generate: int) -> Shape:
    """A shape as the original counts it: OPT's, in 16 bits."""
    return Shape(
        layers=layers,
        hidden=hidden,
        ffn=ffn,
        heads=heads,
        prompt=prompt,
        generate=generate,
        layer_bytes=8.0 * hidden**2 + 4.0 * hidden * ffn,
        kv_bytes=4.0 * hidden,
    )


def shape_of(problem: Problem) -> Shape:
    """A model that the original cannot count, with its true bytes in the original's equations."""
    model = problem.model
    return Shape(
        layers=model.layers,
        hidden=model.hidden,
        ffn=model.ffn,
        heads=model.heads,
        prompt=problem.prompt,
        generate=problem.generate,
        layer_bytes=model.weight_bytes / model.layers,
        kv_bytes=problem.kv_bytes / (problem.prompt + problem.generate) / model.layers,
    )


@dataclass(frozen=True, kw_only=True)
class BlindPolicy:
    """FlexGen's answer: a block, and six shares (weights, cache, hidden states on GPU and CPU)."""

    gpu_batch: int
    gpu_batches: int
    weights: tuple[float, float]
    cache: tuple[float, float]
    hidden: tuple[float, float]
    tokens_s: float
    prefill_s: float
    decode_s: float

    @property
    def batch(self) -> int:
        """Sequences of the block."""
        return self.gpu_batch * self.gpu_batches


Forced = dict[str, float]
"""Shares that are given, by variable: ``wg``, ``wc``, ``cg``, ``cc``, ``hg``, ``hc``."""

ALL_WEIGHTS_ON_CPU: Forced = {"wg": 0.0, "wc": 1.0, "hg": 0.0, "hc": 1.0}
"""Weights and hidden states in CPU memory, as the 2024 study of CXL cards ran it."""


@dataclass(kw_only=True)
class Blind:
    """The published planner for one shape and one machine.

    Attributes:
        shape: Model and request.
        gpu_bytes: GPU memory.
        cpu_bytes: Host memory, all of it alike.
        disk_bytes: Disk.
        constants: Fitted constants.
        forced: Shares that are given.
        solved: Programmes solved so far.
    """

    shape: Shape
    gpu_bytes: float
    cpu_bytes: float
    disk_bytes: float = 0.0
    constants: Constants = Constants()
    forced: Mapping[str, float] | None = None
    solved: int = 0

    def search(self) -> BlindPolicy | None:
        """The published search: GPU batches 1, 2, 3, 4, 8, 16...; each from one batch up, until it slows down.

        Returns:
            The best policy, or none when not even one sequence fits.
        """
        best: BlindPolicy | None = None
        for gpu_batch in _gpu_batches():
            most = self._most_batches(gpu_batch)
            if most == 0:
                break
            before = 0.0
            for batches in range(1, most + 1):
                found = self.policy(gpu_batch, batches)
                if found is None or found.tokens_s < before:
                    break
                before = found.tokens_s
                if best is None or found.tokens_s > best.tokens_s:
                    best = found
        return best

    def quick_search(self) -> BlindPolicy | None:
        """The same answer wherever throughput rises to one peak over the number of GPU batches: by bisection."""
        best: BlindPolicy | None = None
        for gpu_batch in _gpu_batches():
            most = self._most_batches(gpu_batch)
            if most == 0:
                break
            found = self._peak(gpu_batch, most)
            if found is not None and (best is None or found.tokens_s > best.tokens_s):
                best = found
        return best

    def _peak(self, gpu_batch: int, most: int) -> BlindPolicy | None:
        low, high = 1, most
        while low < high:
            middle = (low + high) // 2
            here, after = self.policy(gpu_batch, middle), self.policy(gpu_batch, middle + 1)
            if here is None or after is None or after.tokens_s < here.tokens_s:
                high = middle
            else:
                low = middle + 1
        return self.policy(gpu_batch, low)

    def policy(self, gpu_batch: int, gpu_batches: int) -> BlindPolicy | None:
        """The best shares for one block; none when it does not fit."""
        solution = self._solve(gpu_batch, gpu_batch * gpu_batches)
        if solution is None:
            return None
        values, shape = solution.values, self.shape
        prefill, decode = values["prefill"] * shape.layers, values["decode"] * shape.layers * (shape.generate - 1)
        return BlindPolicy(
            gpu_batch=gpu_batch,
            gpu_batches=gpu_batches,
            weights=(values["wg"], values["wc"]),
            cache=(values["cg"], values["cc"]),
            hidden=(values["hg"], values["hc"]),
            tokens_s=gpu_batch * gpu_batches * shape.generate / (prefill + decode),
            prefill_s=prefill,
            decode_s=decode,
        )

    def _most_batches(self, gpu_batch: int) -> int:
        """Most GPU batches that fit: by doubling, then by bisection."""
        high = 1
        while self._solve(gpu_batch, gpu_batch * high) is not None:
            high *= 2
        low = max(high // 2, 1)
        while low < high:
            middle = (low + high) // 2
            if self._solve(gpu_batch, gpu_batch * middle) is None:
                high = middle
            else:
                low = middle + 1
        return low - 1

    def _solve(self, gpu_batch: int, batch: int) -> Solution | None:
        self.solved += 1
        made = Programme()
        for kind in "wch":
            for place in "gcn":
                made.variable(kind + place)
            made.exactly(f"all {kind}", {kind + place: 1.0 for place in "gcn"}, 1.0)
        made.exactly("no hidden states on disk", {"hn": 1.0}, 0.0)
        for name, value in (self.forced or {}).items():
            made.exactly(f"given {name}", {name: 1.0}, value)
        made.variable("prefill")
        made.variable("decode")
        self._prefill(made, batch)
        self._decode(made, gpu_batch, batch)
        self._memory(made, gpu_batch, batch)
        layers, generate = self.shape.layers, self.shape.generate
        made.minimise({"prefill": layers / batch, "decode": layers * (generate - 1) / batch})
        return made.solve()

    def _prefill(self, made: Programme, batch: int) -> None:
        """Tpre = max(ctog + dtoc, gtoc + ctod, comp)."""
        shape, at = self.shape, self.constants
        hidden = 2.0 * shape.prompt * shape.hidden * batch
        cache = shape.kv_bytes * (shape.prompt + 1) * batch
        load: Terms = {
            "wc": shape.layer_bytes / (at.to_gpu * GIB),
            "wn": shape.layer_bytes * (1.0 / (at.to_gpu * GIB) + 1.0 / (at.from_disk * GIB)),
            "hc": hidden / (at.to_gpu * GIB),
        }
        store: Terms = {
            "cc": cache / (at.cache_to_cpu * GIB),
            "cn": cache * (1.0 / (at.cache_to_cpu * GIB) + 1.0 / (at.cache_to_disk * GIB)),
            "hc": hidden / (at.hidden_to_cpu * GIB),
        }
        products = shape.prompt * shape.layer_bytes / (at.products_prefill * TERA)
        scores = 4.0 * shape.prompt**2 * shape.hidden / (at.scores_prefill * TERA)
        made.at_most("prefill: loads", load | {"prefill": -1.0}, 0.0)
        made.at_most("prefill: stores", store | {"prefill": -1.0}, 0.0)
        made.at_most("prefill: products", {"prefill": -1.0}, -batch * (products + scores))

    def _decode(self, made: Programme, gpu_batch: int, batch: int) -> None:
        """Tgen = ctog + max(gtoc, dtoc, ctod, comp): the load of the weights is not overlapped."""
        shape, at = self.shape, self.constants
        hidden, cache = 2.0 * shape.hidden * batch, shape.kv_bytes * batch
        mean = shape.prompt + shape.generate / 2
        load: Terms = {
            "wc": shape.layer_bytes / (at.to_gpu * GIB),
            "wn": shape.layer_bytes / (at.to_gpu * GIB),
            "hc": hidden / (at.to_gpu * GIB),
            "decode": -1.0,
        }
        store = load | {"hc": load["hc"] + hidden / (at.hidden_to_cpu * GIB)}
        disk_in = load | {
            "cn": cache * mean / (at.from_disk * GIB),
            "wn": load["wn"] + shape.layer_bytes / (0.95 * at.from_disk * GIB),
        }
        disk_out = load | {"cn": cache / (at.hidden_to_disk * GIB)}
        looked = 4.0 * batch * mean * shape.hidden
        cpu = looked / at.cpu_flop_s(gpu_batch, shape.hidden)
        computing = load | {"cg": looked / (at.scores_decode * TERA), "cc": cpu, "cn": cpu}
        products = batch * shape.layer_bytes / (at.products_decode * TERA)
        for name, terms in (("stores", store), ("disk in", disk_in), ("disk out", disk_out)):
            made.at_most(f"decode: {name}", terms, 0.0)
        made.at_most("decode: computing", computing, -products)

    def _memory(self, made: Programme, gpu_batch: int, batch: int) -> None:
        """Peaks of prefill and of decode on the GPU and the CPU; the disk's."""
        shape, alpha = self.shape, self.constants.alpha
        s, whole, h1, g = shape.prompt, shape.prompt + shape.generate, shape.hidden, gpu_batch
        all_weights, all_cache = shape.layer_bytes * shape.layers, shape.kv_bytes * batch * shape.layers
        hidden_p, hidden_g = 2.0 * s * h1, 2.0 * h1
        work_p = g * (18.0 * s * h1 + 2.0 * shape.heads * s**2 + 2.0 * s * shape.ffn)
        work_g = g * (14.0 * h1 + 2.0 * shape.ffn)
        scores_g = g * ((4.0 * h1 + 2.0 * shape.kv_bytes * whole) + 2.0 * shape.heads * whole)
        buffers: Terms = {"wc": 2.0 * shape.layer_bytes, "wn": 2.0 * shape.layer_bytes}
        gpu, cpu = alpha * self.gpu_bytes, alpha * self.cpu_bytes
        on_gpu: Terms = {"wg": all_weights, "cg": all_cache * whole, **buffers}
        made.at_most("GPU, prefill", on_gpu | {"hg": hidden_p * batch, "hc": hidden_p * g}, gpu - work_p)
        made.at_most(
            "GPU, decode",
            on_gpu | {"cg": all_cache * whole + scores_g, "hg": hidden_g * batch, "hc": hidden_g * g},
            gpu - work_g,
        )
        streamed: Terms = {"wc": all_weights + shape.layer_bytes, "wn": shape.layer_bytes}
        made.at_most("CPU, prefill", streamed | {"cc": all_cache * s, "hc": hidden_p * batch + hidden_p * g}, cpu)
        held: Terms = {
            "wc": all_weights,
            "wn": shape.layer_bytes,
            "cc": all_cache * whole,
            "cn": 2.0 * shape.kv_bytes * whole * g,
            "hc": hidden_g * batch,
        }
        made.at_most("CPU, decode", held, cpu - 2.0 * shape.heads * whole * g - hidden_g * g)
        made.at_most("disk", {"wn": all_weights, "cn": all_cache * whole}, alpha * self.disk_bytes)


def _gpu_batches() -> Iterator[int]:
    yield from (1, 2, 3)
    size = 4
    while True:
        yield size
        size *= 2
