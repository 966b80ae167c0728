"""From the fields of a Hugging Face ``config.json`` to a `Model`.

Parameters are counted exactly: matrices, biases and norms, as the architectures' reference
implementations in the transformers library declare them; tests hold the counts against the published
totals. An architecture is one function here and one line in `FAMILIES`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tierloom.errors import RequestError
from tierloom.offload.fields import Fields
from tierloom.offload.model import Model, Part

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

DTYPE_BYTES = {"float32": 4.0, "float16": 2.0, "bfloat16": 2.0, "float8_e4m3fn": 1.0}

TIED = {"bert", "gpt2", "opt"}
"""Architectures whose output matrix is the embedding unless their config says otherwise."""

MXFP4_BITS = 4.25
"""Four bits and one eight-bit scale for every 32 values (Open Compute microscaling formats, 2023)."""


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


def model_of(config: Mapping[str, object], name: str, file: str = "config.json") -> Model:
    """A model from the fields of its ``config.json``.

    Args:
        config: The document.
        name: Short name of the model.
        file: What errors should call the document.

    Raises:
        RequestError: The architecture is not known, or a field that says a size is missing or unknown.
    """
    fields = Fields(config, file)
    family = fields.word("model_type", "")
    if family not in FAMILIES:
        message = f"{file}: `model_type` {family!r} is not known\nhint: known are {', '.join(sorted(FAMILIES))}"
        raise RequestError(message)
    model = FAMILIES[family](fields, name)
    fields.refuse_unread_sizes()
    return _as_stored(model, fields)


def _as_stored(model: Model, fields: Fields) -> Model:
    quantised = fields.table("quantization_config")
    bits = quantised.get("bits")
    if isinstance(bits, int | float) and bits > 0:
        return model.with_weight_bits(float(bits))
    if quantised.get("quant_method") == "fp8":
        return model.with_weight_bits(8.0)
    return model


def _element_bytes(fields: Fields) -> float:
    name = fields.word("torch_dtype", "") or fields.word("dtype", "float16")
    if name not in DTYPE_BYTES:
        message = f"{fields.file}: `torch_dtype` {name!r} is not known\nhint: known are {', '.join(DTYPE_BYTES)}"
        raise RequestError(message)
    return DTYPE_BYTES[name]


def _layers(fields: Fields) -> int:
    return fields.count("num_hidden_layers", "n_layer")


def _grouped(fields: Fields, *, bias: bool = False, head_norms: bool = False) -> Attention:
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


def _latent(fields: Fields) -> Attention:
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


def _dense_feed(fields: Fields, layers: int, matrices: int, inner: str, *, bias: bool = False) -> Feed:
    hidden, width = fields.count("hidden_size", "n_embd"), fields.count(inner, "intermediate_size")
    per_layer = matrices * hidden * width + (hidden + width if bias else 0)
    part = Part(name="mlp", parameters=layers * per_layer, bytes=0.0, layers=layers, tensors=matrices)
    return Feed(parts=(part,), width=width)


def _routed_feed(fields: Fields, layers: int, inner: str, experts: int, *, biases: bool = False) -> Feed:
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
    return Feed(parts=(part, routed), width=width, experts=experts, experts_per_token=_per_token(fields))


def _per_token(fields: Fields) -> int:
    return fields.count("num_experts_per_tok", "experts_per_token")


def _assemble(fields: Fields, name: str, attention: Attention, feed: Feed, *, norms: int, outer: int) -> Model:
    """Puts a model together.

    Args:
        fields: Its config.
        name: Short name.
        attention: Attention of each layer.
        feed: Feed-forward of all layers.
        norms: Parameters of the norms of one layer.
        outer: Parameters outside the layers beside the vocabulary: positions, last norm.
    """
    layers, hidden = _layers(fields), fields.count("hidden_size", "n_embd")
    size = _element_bytes(fields)
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


def _llama(fields: Fields, name: str, *, bias: bool = False, head_norms: bool = False) -> Model:
    hidden = fields.count("hidden_size")
    attention = _grouped(fields, bias=fields.flag("attention_bias", default=bias), head_norms=head_norms)
    feed = _dense_feed(fields, _layers(fields), 3, "intermediate_size")
    return _assemble(fields, name, attention, feed, norms=2 * hidden, outer=hidden)


def _qwen2(fields: Fields, name: str) -> Model:
    return _llama(fields, name, bias=True)


def _qwen3(fields: Fields, name: str) -> Model:
    return _llama(fields, name, head_norms=True)


def _qwen3_moe(fields: Fields, name: str) -> Model:
    hidden = fields.count("hidden_size")
    fields.count_or(0, "intermediate_size")
    feed = _routed_feed(fields, _layers(fields), "moe_intermediate_size", fields.count("num_experts"))
    return _assemble(fields, name, _grouped(fields, head_norms=True), feed, norms=2 * hidden, outer=hidden)


def _mixtral(fields: Fields, name: str) -> Model:
    hidden = fields.count("hidden_size")
    feed = _routed_feed(fields, _layers(fields), "intermediate_size", fields.count("num_local_experts"))
    return _assemble(fields, name, _grouped(fields), feed, norms=2 * hidden, outer=hidden)


def _gpt_oss(fields: Fields, name: str) -> Model:
    """Experts in MXFP4 with biases, attention with biases and one sink a head (arXiv 2508.10925)."""
    hidden, heads = fields.count("hidden_size"), fields.count("num_attention_heads")
    experts = fields.count("num_local_experts", "num_experts")
    feed = _routed_feed(fields, _layers(fields), "intermediate_size", experts, biases=True)
    model = _assemble(fields, name, _grouped(fields, bias=True), feed, norms=2 * hidden + hidden + heads, outer=hidden)
    if fields.table("quantization_config").get("quant_method") != "mxfp4":
        return model
    return _experts_in(model, MXFP4_BITS)


def _experts_in(model: Model, bits: float) -> Model:
    parts = (
        replace(part, bytes=part.parameters * bits / 8.0) if part.name == "experts" else part for part in model.parts
    )
    return replace(model, parts=tuple(parts))


def _deepseek(fields: Fields, name: str) -> Model:
    """Latent attention; the first layers dense, the others with routed and shared experts."""
    hidden, layers = fields.count("hidden_size"), _layers(fields)
    dense, experts = fields.count_or(0, "first_k_dense_replace"), fields.count("n_routed_experts")
    shared, inner = fields.count_or(0, "n_shared_experts"), fields.count("moe_intermediate_size")
    routed = _routed_feed(fields, layers - dense, "moe_intermediate_size", experts, biases=False)
    correction = experts if fields.word("topk_method", "") == "noaux_tc" else 0
    mlp = dense * 3 * hidden * fields.count("intermediate_size")
    mlp += (layers - dense) * (shared * 3 * hidden * inner + correction) + routed.parts[0].parameters
    part = Part(name="mlp", parameters=mlp, bytes=0.0, layers=layers, tensors=3)
    feed = Feed(parts=(part, routed.parts[1]), width=inner, experts=experts, experts_per_token=routed.experts_per_token)
    return _assemble(fields, name, _latent(fields), feed, norms=2 * hidden, outer=hidden)


def _opt(fields: Fields, name: str) -> Model:
    """OPT: biases everywhere, norms with bias, positions learned with an offset of two."""
    hidden = fields.count("hidden_size")
    attention = _with_output_bias(_grouped(fields, bias=True), hidden)
    feed = _dense_feed(fields, _layers(fields), 2, "ffn_dim", bias=True)
    outer = 2 * hidden + (fields.count("max_position_embeddings") + 2) * hidden
    return _assemble(fields, name, attention, feed, norms=4 * hidden, outer=outer)


def _gpt2(fields: Fields, name: str) -> Model:
    hidden, heads = fields.count("n_embd"), fields.count("n_head")
    width = hidden // heads
    attention = Attention(
        parameters=4 * hidden * hidden + 4 * hidden,
        kv_elements=2 * heads * width,
        score_flop=4 * heads * width,
        heads=heads,
        tensors=2,
    )
    inner = fields.count_or(4 * hidden, "n_inner")
    part = Part(
        name="mlp",
        parameters=_layers(fields) * (2 * hidden * inner + hidden + inner),
        bytes=0.0,
        layers=_layers(fields),
        tensors=2,
    )
    outer = 2 * hidden + fields.count("n_positions") * hidden
    return _assemble(fields, name, attention, Feed(parts=(part,), width=inner), norms=4 * hidden, outer=outer)


def _bert(fields: Fields, name: str) -> Model:
    """BERT with its pooler; an encoder, so only training can be planned for it."""
    hidden = fields.count("hidden_size")
    attention = _with_output_bias(_grouped(fields, bias=True), hidden)
    feed = _dense_feed(fields, _layers(fields), 2, "intermediate_size", bias=True)
    tables = (fields.count("max_position_embeddings") + fields.count_or(2, "type_vocab_size")) * hidden
    pooler = hidden * hidden + hidden
    return _assemble(fields, name, attention, feed, norms=4 * hidden, outer=2 * hidden + tables + pooler)


def _with_output_bias(attention: Attention, hidden: int) -> Attention:
    return replace(attention, parameters=attention.parameters + hidden)


FAMILIES: dict[str, Callable[[Fields, str], Model]] = {
    "bert": _bert,
    "deepseek_v2": _deepseek,
    "deepseek_v3": _deepseek,
    "gpt2": _gpt2,
    "gpt_oss": _gpt_oss,
    "llama": _llama,
    "mistral": _llama,
    "mixtral": _mixtral,
    "opt": _opt,
    "qwen2": _qwen2,
    "qwen3": _qwen3,
    "qwen3_moe": _qwen3_moe,
}
