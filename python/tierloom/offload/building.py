"""The pieces that every architecture is put together from: attention, feed-forward blocks, vocabulary.

Parameters are counted exactly: matrices, biases and norms, as the architectures' reference
implementations in the transformers library declare them. `architectures` says which model has which.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tierloom.errors import RequestError
from tierloom.offload.model import Model, Part

if TYPE_CHECKING:
    from tierloom.offload.fields import Fields

DTYPE_BYTES = {"float32": 4.0, "float16": 2.0, "bfloat16": 2.0, "float8_e4m3fn": 1.0}

TIED = {"bert", "gemma", "gemma2", "gemma3_text", "gpt2", "opt"}
"""Architectures whose output matrix is the embedding unless their config says otherwise."""


@dataclass(frozen=True, kw_only=True)
class Attention:
    """Attention of one layer: parameters, KV elements a token, operations a position."""

    parameters: int
    kv_elements: int
    score_flop: int
    heads: int
    tensors: int = 4


@dataclass(frozen=True, kw_only=True)
class Feed:
    """Feed-forward blocks of all layers."""

    parts: tuple[Part, ...]
    width: int
    experts: int = 0
    experts_per_token: int = 0


def element_bytes(fields: Fields) -> float:
    """Bytes of an element as the config has it stored.

    Raises:
        RequestError: The type is not known.
    """
    name = fields.word("torch_dtype", "") or fields.word("dtype", "float16")
    if name not in DTYPE_BYTES:
        message = f"{fields.file}: `torch_dtype` {name!r} is not known\nhint: known are {', '.join(DTYPE_BYTES)}"
        raise RequestError(message)
    return DTYPE_BYTES[name]


def layers_of(fields: Fields) -> int:
    """Layers of the decoder or encoder."""
    return fields.count("num_hidden_layers", "n_layer")


def grouped(fields: Fields, *, bias: bool = False, head_norms: bool = False) -> Attention:
    """Multi-head and grouped-query attention: every query head has its scores, groups share keys and values."""
    hidden, heads = fields.count("hidden_size"), fields.count("num_attention_heads")
    kv_heads = fields.count_or(heads, "num_key_value_heads")
    width = fields.count_or(hidden // heads, "head_dim")
    matrices = hidden * width * (2 * heads + 2 * kv_heads)
    biases = width * (heads + 2 * kv_heads) if bias else 0
    norms = 2 * width if head_norms else 0
    return Attention(
        parameters=matrices + biases + norms,
        kv_elements=2 * kv_heads * width,
        score_flop=4 * heads * width,
        heads=heads,
    )


def latent(fields: Fields) -> Attention:
    """Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434): one compressed vector a token is cached.

    Scores are counted as decoding computes them, with the up-projections absorbed into the queries.
    """
    hidden, heads = fields.count("hidden_size"), fields.count("num_attention_heads")
    latent, rope = fields.count("kv_lora_rank"), fields.count("qk_rope_head_dim")
    plain, value = fields.count("qk_nope_head_dim"), fields.count("v_head_dim")
    rank = fields.count_or(0, "q_lora_rank")
    fields.count_or(heads, "num_key_value_heads")
    fields.count_or(0, "head_dim", "qk_head_dim")
    queries = hidden * rank + rank + rank * heads * (plain + rope) if rank else hidden * heads * (plain + rope)
    keys = hidden * (latent + rope) + latent + latent * heads * (plain + value)
    return Attention(
        parameters=queries + keys + heads * value * hidden,
        kv_elements=latent + rope,
        score_flop=2 * heads * (2 * latent + rope),
        heads=heads,
        tensors=5,
    )


def dense_feed(fields: Fields, layers: int, matrices: int, inner: str, *, bias: bool = False) -> Feed:
    """The same block in every layer, of two or three matrices."""
    hidden, width = fields.count("hidden_size", "n_embd"), fields.count(inner, "intermediate_size")
    per_layer = matrices * hidden * width + (hidden + width if bias else 0)
    part = Part(name="mlp", parameters=layers * per_layer, bytes=0.0, layers=layers, tensors=matrices)
    return Feed(parts=(part,), width=width)


def routed_feed(fields: Fields, layers: int, inner: str, experts: int, *, biases: bool = False) -> Feed:
    """Experts of three matrices each, and the router that chooses among them."""
    hidden, width = fields.count("hidden_size"), fields.count(inner)
    per_expert = 3 * hidden * width + (2 * width + hidden if biases else 0)
    routed = Part(
        name="experts",
        parameters=layers * experts * per_expert,
        bytes=0.0,
        layers=layers,
        tensors=experts,
        active="routed",
    )
    router = layers * (hidden + (1 if biases else 0)) * experts
    part = Part(name="mlp", parameters=router, bytes=0.0, layers=layers, tensors=1)
    return Feed(parts=(part, routed), width=width, experts=experts, experts_per_token=per_token(fields))


def per_token(fields: Fields) -> int:
    """Experts that a token meets."""
    return fields.count("num_experts_per_tok", "experts_per_token")


def assemble(fields: Fields, name: str, attention: Attention, feed: Feed, *, norms: int, outer: int) -> Model:
    """Puts a model together.

    Args:
        fields: Its config.
        name: Short name.
        attention: Attention of each layer.
        feed: Feed-forward of all layers.
        norms: Parameters of the norms of one layer.
        outer: Parameters outside the layers beside the vocabulary: positions, last norm.
    """
    layers, hidden = layers_of(fields), fields.count("hidden_size", "n_embd")
    size = element_bytes(fields)
    words = fields.count("vocab_size") * hidden
    tied = fields.flag("tie_word_embeddings", default=fields.word("model_type", "") in TIED)
    parts = (
        Part(
            name="attention",
            parameters=layers * (attention.parameters + norms),
            bytes=0.0,
            layers=layers,
            tensors=attention.tensors,
        ),
        *feed.parts,
        Part(name="head", parameters=words + hidden, bytes=0.0, layers=1, tensors=1),
        Part(
            name="embedding",
            parameters=outer - hidden + (0 if tied else words),
            bytes=0.0,
            layers=1,
            tensors=1,
            active="rows",
        ),
    )
    return Model(
        name=name,
        family=fields.word("model_type", ""),
        layers=layers,
        hidden=hidden,
        heads=attention.heads,
        ffn=feed.width,
        parts=tuple(part for part in parts if part.parameters > 0),
        kv_bytes_per_token=layers * attention.kv_elements * size,
        score_flop=float(layers * attention.score_flop),
        element_bytes=size,
        experts=feed.experts,
        experts_per_token=feed.experts_per_token,
        max_positions=fields.count_or(0, "max_position_embeddings", "n_positions"),
    ).with_weight_bits(8.0 * size)


def with_output_bias(attention: Attention, hidden: int) -> Attention:
    """The same with a bias of the output matrix."""
    return replace(attention, parameters=attention.parameters + hidden)
