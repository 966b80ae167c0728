"""An offloaded decode loop, for real: a small transformer whose weights are loaded layer by layer.

It runs the steps of FlexGen on one machine: for every layer the weights are copied from host memory into
a staging buffer (the "GPU"), the KV cache is attended to where it lies, and the matrix products read the
staging buffer. Weights and caches are random: speed does not depend on them. PyTorch computes when it can
be imported, else NumPy does; both allocate each tensor with one large allocation, so a plan of
``tierloom offload infer --emit tierloom-plan`` selects them by size.

    python decode_loop.py --layers 8 --hidden 1024 --ffn 2816 --batch 8 --tokens 1024 --steps 4

Prints one JSON document: seconds of a step, and of its pieces.
"""

from __future__ import annotations

import argparse
import json
import time

try:
    import torch
except ImportError:
    torch = None
import numpy as np

WORDS = 4096


def tensor(*shape: int):
    """Memory of its own, every page touched."""
    if torch is not None:
        return torch.full(shape, 1e-3, dtype=torch.float32)
    return np.full(shape, 1e-3, dtype=np.float32)


def copy(target, source) -> None:
    """A load: host memory to the staging buffer."""
    if torch is not None:
        target.copy_(source)
    else:
        np.copyto(target, source)


def softmax(scores):
    if torch is not None:
        return torch.softmax(scores, dim=-1)
    exp = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return exp / exp.sum(axis=-1, keepdims=True)


class Model:
    """Weights of all layers, KV caches of all layers and GPU batches, and one staging buffer a matrix."""

    def __init__(self, options: argparse.Namespace) -> None:
        hidden, ffn = options.hidden, options.ffn
        self.shapes = [(hidden, hidden)] * 4 + [(hidden, ffn), (hidden, ffn), (ffn, hidden)]
        self.weights = [[tensor(*shape) for shape in self.shapes] for _ in range(options.layers)]
        self.staging = [tensor(*shape) for shape in self.shapes]
        self.heads = options.heads
        blocks = options.batch // options.gpu_batch
        cache = (2, options.gpu_batch, options.heads, options.tokens, hidden // options.heads)
        self.caches = [[tensor(*cache) for _ in range(blocks)] for _ in range(options.layers)]
        self.states = [tensor(options.gpu_batch, hidden) for _ in range(blocks)]
        self.embedding, self.head = tensor(WORDS, hidden), tensor(hidden, WORDS)


def step(model: Model, resident: int, spent: dict[str, float]) -> None:
    """One decode step of the whole block; the first `resident` layers are not loaded."""
    for layer, weights in enumerate(model.weights):
        used = weights
        if layer >= resident:
            used = model.staging
            with clock(spent, "load"):
                for target, source in zip(model.staging, weights):
                    copy(target, source)
        for block, cache in enumerate(model.caches[layer]):
            with clock(spent, "products"):
                query = (model.states[block] @ used[0]).reshape(*cache.shape[1:3], 1, cache.shape[4])
            with clock(spent, "attention"):
                mixed = softmax(query @ cache[0].swapaxes(-1, -2)) @ cache[1]
            with clock(spent, "products"):
                state = mixed.reshape(model.states[block].shape) @ used[3]
                state = (state @ used[4]) @ used[6]
                model.states[block] = state * 1e-3


class clock:  # noqa: N801 (a context manager that reads like a word)
    """Adds the time of a block to one piece."""

    def __init__(self, spent: dict[str, float], piece: str) -> None:
        self.spent, self.piece = spent, piece

    def __enter__(self) -> None:
        self.start = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self.spent[self.piece] = self.spent.get(self.piece, 0.0) + time.perf_counter() - self.start


def main() -> None:
    """Builds the model, decodes, prints."""
    parser = argparse.ArgumentParser()
    for name, default in (
        ("layers", 8),
        ("hidden", 1024),
        ("heads", 8),
        ("ffn", 2816),
        ("batch", 8),
        ("gpu-batch", 8),
        ("tokens", 1024),
        ("steps", 4),
        ("resident", 0),
    ):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    model = Model(options)
    step(model, options.resident, {})
    best: dict[str, float] = {}
    for _ in range(options.steps):
        spent: dict[str, float] = {}
        start = time.perf_counter()
        step(model, options.resident, spent)
        spent["step"] = time.perf_counter() - start
        if not best or spent["step"] < best["step"]:
            best = spent
    runs = torch.__version__ if torch is not None else f"NumPy {np.__version__}"
    weights = sum(a * b * 4 for a, b in model.shapes) * options.layers
    kv = 2 * options.batch * options.tokens * options.hidden * 4 * options.layers
    print(json.dumps({"runs_on": str(runs), "seconds": best, "weight_bytes": weights, "kv_bytes": kv}))


if __name__ == "__main__":
    main()
