"""The pieces that every architecture is put together from: attention, feed-forward blocks, vocabulary.

Parameters are counted exactly: matrices, biases and norms, as the architectures' reference
implementations in the transformers library declare them. `architectures` says which model has which.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tierloom.errors import RequestError
from tierloom.offload.model import INDEXER_KEY_BYTES, Cache, Model, Part

if TYPE_CHECKING:
    from tierloom.offload.fields import Fields

DTYPE_BYTES = {"float32": 4.0, "float16": 2.0, "bfloat16": 2.0, "float8_e4m3fn": 1.0}

TIED = {"bert", "gemma", "gemma2", "gemma3_text", "gemma4_text", "gpt2", "granitemoehybrid", "opt"}
"""Architectures whose output matrix is the embedding unless their config says otherwise."""


@dataclass(frozen=True, kw_only=True)
class Attention:
    """Attention of one layer, or what stands in its place: parameters, and what it keeps of a sequence."""

    parameters: int
    caches: tuple[Cache, ...]
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
    blocks = fields.words("layers_block_type")
    return len(blocks) if blocks else fields.count("num_hidden_layers", "n_layer")


def grouped(
    fields: Fields, *, bias: bool = False, head_norms: bool = False, gate: bool = False, more: int = 0
) -> Attention:
    """Multi-head and grouped-query attention: every query head has its scores, groups share keys and values.

    Args:
        fields: The config.
        bias: Queries, keys and values have biases.
        head_norms: Queries and keys are normed head by head.
        gate: The queries' matrix also makes a gate of the output.
        more: Other parameters of the layer's attention.
    """
    hidden, heads = fields.count("hidden_size"), fields.count("num_attention_heads")
    kv_heads = fields.count_or(heads, "num_key_value_heads")
    width = fields.count_or(hidden // heads, "head_dim", "attention_head_dim")
    matrices = hidden * width * ((3 if gate else 2) * heads + 2 * kv_heads)
    biases = width * (heads + 2 * kv_heads) if bias else 0
    norms = 2 * width if head_norms else 0
    return Attention(
        parameters=matrices + biases + norms + more,
        caches=(kept(fields, 2 * kv_heads * width, 4 * heads * width),),
        heads=heads,
    )


def kept(fields: Fields, elements: int, score_flop: int) -> Cache:
    """All positions, in the bits of an activation."""
    return Cache(elements=elements, element_bytes=element_bytes(fields), score_flop=float(score_flop))


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
        caches=(kept(fields, latent + rope, 2 * heads * (2 * latent + rope)),),
        heads=heads,
        tensors=5,
    )


def indexed(fields: Fields, attention: Attention) -> Attention:
    """Sparse attention (DeepSeek-V3.2-Exp, 2025): small keys of all positions choose those that are attended to."""
    hidden, rank = fields.count("hidden_size"), fields.count("q_lora_rank")
    heads, width = fields.count("index_n_heads"), fields.count("index_head_dim")
    indexer = rank * heads * width + hidden * width + 2 * width + hidden * heads
    keys = Cache(elements=width, element_bytes=INDEXER_KEY_BYTES, score_flop=2.0 * heads * width)
    chosen = (replace(cache, looks=fields.count("index_topk")) for cache in attention.caches)
    return replace(attention, parameters=attention.parameters + indexer, caches=(*chosen, keys))


def windowed(attention: Attention, window: int) -> Attention:
    """The same attention over the newest `window` positions; 0 is all of them."""
    return replace(attention, caches=tuple(replace(cache, window=window) for cache in attention.caches))


Layers = Sequence[tuple[int, Attention]]
"""How many layers have which attention."""


def by_window(fields: Fields, attention: Attention, every: int = 0) -> Layers:
    """Layers that look at everything and layers with a window, as the config has them.

    Args:
        fields: The config.
        attention: Attention of each layer.
        every: Of so many layers one looks at everything, where the config does not list them; 0 is none.
    """
    layers, window = layers_of(fields), fields.count_or(0, "sliding_window")
    whole, every = fields.count_or(layers, "max_window_layers"), fields.count_or(every, "sliding_window_pattern")
    if not window or not fields.flag("use_sliding_window", default=True):
        return ((layers, attention),)
    listed = fields.words("layer_types")
    if listed:
        full = listed.count("full_attention")
    elif "use_sliding_window" in fields.config:
        full = min(whole, layers)
    else:
        full = layers // every if every else 0
    return ((full, attention), (layers - full, windowed(attention, window)))


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
    return fields.count("num_experts_per_tok", "experts_per_token", "top_k_experts")


def assemble(
    fields: Fields,
    name: str,
    attention: Attention | Layers,
    feed: Feed,
    *,
    norms: int,
    outer: int,
    draft: Part | None = None,
) -> Model:
    """Puts a model together.

    Args:
        fields: Its config.
        name: Short name.
        attention: Attention of each layer, or of how many layers which.
        feed: Feed-forward of all layers.
        norms: Parameters of the norms of one layer.
        outer: Parameters outside the layers beside the vocabulary: positions, last norm.
        draft: Layers that predict several tokens at once.
    """
    layers, hidden = layers_of(fields), fields.count("hidden_size", "n_embd")
    mixed = [(layers, attention)] if isinstance(attention, Attention) else [each for each in attention if each[0]]
    mixing = sum(count for count, _ in mixed)
    size = element_bytes(fields)
    words = fields.count("vocab_size") * hidden
    tied = fields.flag("tie_word_embeddings", default=fields.word("model_type", "") in TIED)
    parts = (
        Part(
            name="attention",
            parameters=sum(count * each.parameters for count, each in mixed) + layers * norms,
            bytes=0.0,
            layers=mixing,
            tensors=max(each.tensors for _, each in mixed),
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
        heads=max(each.heads for _, each in mixed),
        ffn=feed.width,
        parts=tuple(part for part in parts if part.parameters > 0),
        caches=_together(mixed),
        element_bytes=size,
        experts=feed.experts,
        experts_per_token=feed.experts_per_token,
        max_positions=fields.count_or(0, "max_position_embeddings", "n_positions"),
        draft=draft,
    ).with_weight_bits(8.0 * size)


def _together(mixed: Layers) -> tuple[Cache, ...]:
    """The caches of all layers, those of a kind added up."""
    return tuple(
        replace(cache, elements=count * cache.elements, score_flop=count * cache.score_flop)
        for count, each in mixed
        for cache in each.caches
    )


def drafting(fields: Fields, layer: int, count: int) -> Part | None:
    """Layers that predict several tokens at once (DeepSeek-V3, arXiv 2412.19437, section 2.2).

    Each has a layer like the model's last, a matrix that joins two hidden states, and three norms.

    Args:
        fields: The config.
        layer: Parameters of one layer of the model.
        count: How many there are.
    """
    hidden = fields.count("hidden_size")
    parameters = count * (layer + 2 * hidden * hidden + 3 * hidden)
    return Part(name="draft", parameters=parameters, bytes=0.0, layers=count, tensors=5) if count else None


def with_output_bias(attention: Attention, hidden: int) -> Attention:
    """The same with a bias of the output matrix."""
    return replace(attention, parameters=attention.parameters + hidden)
