"""The bytes of a model's weights as its checkpoint stores them: matrices as its method does, all else as it was.

`architectures` uses it; `quantisation` says the bits. Norms, biases, routers and convolutions are never quantised, the
embedding and the output matrix where the method or the config says so.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tierloom.offload.model import Tensor
from tierloom.offload.quantisation import Scheme, scheme_of

if TYPE_CHECKING:
    from tierloom.offload.fields import Fields
    from tierloom.offload.model import Model, Part

KEYS = ("quantization_config", "compression_config", "quantization")
"""Tables of a config that say how weights are stored; MLX writes the last."""

ALGORITHMS = {"FP8": 8, "INT8": 8, "NVFP4": 4}
"""Bits by ModelOpt's names of what a cache is stored in."""


def as_stored(model: Model, fields: Fields) -> Model:
    """The model with its weights in the bits that its checkpoint has.

    Raises:
        RequestError: The method is not known: the size would be counted wrong.
    """
    said = next((table for table in map(fields.table, KEYS) if table), None)
    if not said:
        return model
    scheme = scheme_of(said, fields.file)
    parts = tuple(_stored(part, scheme) for part in model.parts)
    return replace(model, parts=parts, draft=model.draft and _as_its_layers(model.draft, parts, scheme))


def cache_guess(fields: Fields) -> tuple[str, ...]:
    """What a checkpoint says of the cache's bits: a run may take them or not, so they are told and not counted."""
    said = next((table for table in map(fields.table, KEYS) if table), {})
    scheme, algorithm = said.get("kv_cache_scheme"), str(said.get("kv_cache_quant_algo") or "")
    bits = scheme.get("num_bits") if isinstance(scheme, dict) else ALGORITHMS.get(algorithm.upper())
    if not bits:
        return ()
    return (f"the checkpoint has scales for a KV cache of {bits} bits; to count on it, say --kv-bits {bits}",)


def _stored(part: Part, scheme: Scheme) -> Part:
    outside = {"head": scheme.head, "embedding": scheme.embedding}
    if part.name in outside:
        bits = outside[part.name]
        return part if bits is None else part.stored_in(bits)
    named = tuple(_tensor(part, each, scheme) for each in part.named or _whole(part))
    saved = sum(before.bytes - after.bytes for before, after in zip(part.named or _whole(part), named, strict=True))
    return replace(part, bytes=part.bytes - saved, named=named if part.named else ())


def _tensor(part: Part, tensor: Tensor, scheme: Scheme) -> Tensor:
    bits = scheme.of(part.name, tensor.name)
    return tensor if bits is None else replace(tensor, bytes=tensor.parameters * bits / 8.0)


def _whole(part: Part) -> tuple[Tensor, ...]:
    """A part whose matrices have no names counts as one."""
    block = "self_attn" if part.name == "attention" else part.name
    return (Tensor(f"layers.0.{block}", 0, part.parameters, part.bytes),)


def _as_its_layers(draft: Part, parts: tuple[Part, ...], scheme: Scheme) -> Part:
    """Layers that predict ahead are stored as the model's, unless the config names them."""
    if scheme.of("draft", f"layers.{max(part.layers for part in parts)}.mlp") is None:
        return draft
    inner = [part for part in parts if part.name not in {"head", "embedding"}]
    return draft.stored_in(8.0 * sum(part.bytes for part in inner) / sum(part.parameters for part in inner))
