"""Plans whose tensors ``-ot`` of llama.cpp shares out, and what it leaves on the GPU of each."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from itertools import pairwise

from tierloom.offload.answers import InferAnswer
from tierloom.offload.exporters import emit
from tierloom.offload.exporters.tensor_overrides import PATTERNS, pieces
from tierloom.offload.model import Part

TENSORS = {"attention": "attn_q", "mlp": "ffn_gate_inp", "experts": ""}
"""A tensor of a layer that stands for all of a part; those of experts have their own names."""


def patterns(answer: InferAnswer) -> list[str]:
    words = shlex.split(emit("llama.cpp", answer), comments=True)
    return [word.removesuffix("=CPU") for before, word in pairwise(words) if before == "-ot"]


def tensors(part: Part) -> Iterator[tuple[str, float]]:
    """Names and bytes of a part's tensors, as far as patterns tell them apart."""
    if part.name not in PATTERNS:
        yield {"head": "output.weight", "embedding": "token_embd.weight"}[part.name], part.bytes
    else:
        for piece in pieces(part):
            yield (
                f"blk.{piece.layer}.{(piece.tensor or TENSORS[part.name]).removesuffix('.weight')}.weight",
                piece.bytes,
            )


def on_gpu(answer: InferAnswer, part: Part) -> float:
    """Bytes of a part that no pattern sends to the host, found as llama.cpp finds them."""
    moved = [re.compile(pattern) for pattern in patterns(answer)]
    return sum(size for name, size in tensors(part) if not any(each.search(name) for each in moved))


PLANS = [
    ("deepseek-v3", "rtx-4090", "liu-a", 4.85),
    ("kimi-k2.5", "rtx-5090", "server-9355p", None),
    ("glm-4.5-air", "rtx-4090", "liu-a", 4.5),
    ("llama-4-maverick", "rtx-5090", "server-9355p", 4.5),
    ("mimo-v2-flash", "rtx-5090", "server-9355p", 4.5),
    ("nemotron-3-nano-30b-a3b", "rtx-4090", "liu-a", 8.5),
    ("qwen3-next-80b-a3b", "rtx-4090", "liu-a", 4.5),
    ("llama-3.1-70b", "rtx-4090", "liu-a", 4.5),
]
