"""Which tensors of a GGUF file go to host memory, as patterns over their names: ``-ot`` of llama.cpp.

`llama_cpp` uses it. llama.cpp moves whole tensors, the experts of a layer as one for each of their matrices. So of each
part the first layers stay on the GPU, of experts as many matrices more, until the plan's bytes are reached: never more.
Patterns have no look-ahead, for a shell would take its ``!`` for a word of its history.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tierloom.offload.problem import GPU

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tierloom.offload.answers import InferAnswer
    from tierloom.offload.model import Model, Part

PATTERNS = {
    "attention": r"(attn|ssm|indexer|shortconv|time_mix)[a-z0-9_]*\.",
    "mlp": r"(ffn(_[a-z0-9_]*([^s]|chexps))?|(post|pre|exp|layer|inp|proj|altup|laurel|channel)[a-z0-9_]*)\.",
    "experts": r"ffn_[a-z_]*_exps\.",
}
"""Names of tensors of a layer in GGUF files, by part: of those that end in s, routed experts' end in ``_exps``."""

EXPERTS = {2: ("ffn_up_exps", "ffn_down_exps"), 3: ("ffn_gate_exps", "ffn_up_exps", "ffn_down_exps")}
"""Matrices of experts with two and with three of them, in the order of `model_parts.GATED`."""

OUTPUT, WORDS = r"^output\.", "token_embd"

NEARLY = 1e-6
"""Share by which bytes may be off for rounding."""


@dataclass(frozen=True)
class Piece:
    """What is moved as one: a layer's tensors of a part, or one matrix of its experts."""

    layer: int
    tensor: str
    bytes: float


@dataclass(frozen=True)
class Overrides:
    """Patterns of what goes to host memory, and the bytes of weights that stay on the GPU."""

    patterns: tuple[str, ...]
    gpu_bytes: float


def overrides(answer: InferAnswer) -> Overrides:
    """The patterns of a plan."""
    model, spare, stays = answer.plan.problem.model, 0.0, 0.0
    found: list[str] = []
    for part in model.parts:
        planned = answer.whole.plan.placement.weights[part.name][GPU]
        if part.name not in PATTERNS:
            continue
        kept = _kept(pieces(part), planned + spare)
        left = pieces(part)[kept:]
        held = sum(piece.bytes for piece in pieces(part)[:kept])
        spare, stays = planned + spare - held, stays + held
        found += _patterns(part, left)
    outside, words = _outside(answer, model)
    named = bool(found or outside)
    patterns = (*found, *_ahead(model.draft), *outside, *(words if named else ()))
    return Overrides(patterns, stays + _outside_bytes(answer))


def _ahead(draft: Part | None) -> Iterator[str]:
    """Layers of a file that predict ahead, which no plan counts: where a version loads them, the GPU has no room."""
    if draft is not None and draft.named:
        yield rf"blk\.({'|'.join(map(str, draft.numbers))})\."


def pieces(part: Part) -> Sequence[Piece]:
    """What can be moved of a part, first layers first; what has no name is shared out evenly."""
    layers = part.numbers or range(part.layers)
    even = (part.bytes - sum(tensor.bytes for tensor in part.named)) / len(layers)
    made = []
    for layer in layers:
        tensors = [tensor for tensor in part.named if tensor.layer == layer]
        if part.name == "experts" and tensors:
            names = _experts([tensor.name for tensor in tensors])
            made += [
                Piece(layer, name, tensor.bytes + even / len(tensors))
                for name, tensor in zip(names, tensors, strict=True)
            ]
        else:
            made.append(Piece(layer, "", even + sum(tensor.bytes for tensor in tensors)))
    return made


def from_gguf(model: Model) -> bool:
    """Whether the names of a model's tensors are those of a GGUF file."""
    return any(tensor.name.startswith(("blk.", WORDS)) for part in model.parts for tensor in part.named)


def _experts(names: Sequence[str]) -> Sequence[str]:
    """GGUF's names of a layer's expert tensors."""
    if names[0].startswith("blk."):
        return [name.split(".", 2)[2] for name in names]
    return EXPERTS[len(names)]


def _kept(of: Sequence[Piece], planned: float) -> int:
    """How many pieces fit the bytes that are planned for the GPU."""
    held = 0.0
    for count, piece in enumerate(of):
        held += piece.bytes
        if held > planned * (1.0 + NEARLY):
            return count
    return len(of)


def _patterns(part: Part, left: Sequence[Piece]) -> Iterator[str]:
    """Whole layers by one pattern, single matrices of a layer that is cut by another."""
    whole = {piece.layer for piece in left if _is_whole(part, piece.layer, left)}
    if whole:
        yield rf"blk\.({'|'.join(map(str, sorted(whole)))})\.{PATTERNS[part.name]}"
    for piece in left:
        if piece.layer not in whole:
            yield rf"blk\.{piece.layer}\.{piece.tensor.removesuffix('.weight')}\."


def _is_whole(part: Part, layer: int, left: Sequence[Piece]) -> bool:
    return sum(piece.layer == layer for piece in left) == sum(piece.layer == layer for piece in pieces(part))


def _outside(answer: InferAnswer, model: Model) -> tuple[list[str], list[str]]:
    """Patterns of the output matrix where it is on the host, and of the table of words where it is not the same."""
    counts = answer.whole.tensors
    head = bool(counts["head"][GPU])
    tied = "embedding" not in counts or any(
        tensor.name.startswith(WORDS) for part in model.parts if part.name == "head" for tensor in part.named
    )
    words = not tied and not counts["embedding"][GPU]
    return ([] if head else [WORDS if tied else OUTPUT]), ([WORDS] if words else [])


def _outside_bytes(answer: InferAnswer) -> float:
    placed = answer.whole.plan.placement.weights
    return sum(placed[name][GPU] for name in ("head", "embedding") if name in placed)
