"""From the fields of a Hugging Face ``config.json`` to a `Model`.

An architecture is one function here and one line in `FAMILIES`; tests hold the counts of parameters against
the published totals. Of models that also see or hear, the language model is read (``text_config``).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tierloom.errors import RequestError
from tierloom.offload.building import (
    Attention,
    Feed,
    assemble,
    dense_feed,
    grouped,
    latent,
    layers_of,
    routed_feed,
    with_output_bias,
)
from tierloom.offload.fields import Fields
from tierloom.offload.model import Model, Part

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

MXFP4_BITS = 4.25
"""Four bits and one eight-bit scale for every 32 values (Open Compute microscaling formats, 2023)."""


def model_of(config: Mapping[str, object], name: str, file: str = "config.json") -> Model:
    """A model from the fields of its ``config.json``.

    Args:
        config: The document.
        name: Short name of the model.
        file: What errors should call the document.

    Raises:
        RequestError: The architecture is not known, or a field that says a size is missing or unknown.
    """
    inner = config.get("text_config")
    if isinstance(inner, dict):
        return model_of(_language_model(config, inner), name, f"{file}, text_config")
    fields = Fields(config, file)
    family = fields.word("model_type", "")
    if family not in FAMILIES:
        message = (
            f"{file}: `model_type` {family!r} is not known\nhint: known are {', '.join(sorted(FAMILIES))}; "
            "if it is built as one of them, name that one there"
        )
        raise RequestError(message)
    model = FAMILIES[family](fields, name)
    fields.refuse_unread_sizes()
    return _as_stored(model, fields)


def _language_model(config: Mapping[str, object], inner: Mapping[str, object]) -> dict[str, object]:
    """The language model of one that also sees or hears, with what the whole says of numbers and storage."""
    shared = ("torch_dtype", "dtype", "tie_word_embeddings", "quantization_config")
    return {name: config[name] for name in shared if name in config} | dict(inner)


def _as_stored(model: Model, fields: Fields) -> Model:
    quantised = fields.table("quantization_config")
    bits = quantised.get("bits")
    if isinstance(bits, int | float) and bits > 0:
        return model.with_weight_bits(float(bits))
    if quantised.get("quant_method") == "fp8":
        return model.with_weight_bits(8.0)
    return model


def _llama(fields: Fields, name: str, *, bias: bool = False, head_norms: bool = False, norms: int = 2) -> Model:
    hidden = fields.count("hidden_size")
    attention = grouped(fields, bias=fields.flag("attention_bias", default=bias), head_norms=head_norms)
    feed = dense_feed(fields, layers_of(fields), 3, "intermediate_size")
    return assemble(fields, name, attention, feed, norms=norms * hidden, outer=hidden)


def _qwen2(fields: Fields, name: str) -> Model:
    return _llama(fields, name, bias=True)


def _qwen3(fields: Fields, name: str) -> Model:
    return _llama(fields, name, head_norms=True)


def _qwen3_moe(fields: Fields, name: str) -> Model:
    hidden = fields.count("hidden_size")
    fields.count_or(0, "intermediate_size")
    feed = routed_feed(fields, layers_of(fields), "moe_intermediate_size", fields.count("num_experts"))
    return assemble(fields, name, grouped(fields, head_norms=True), feed, norms=2 * hidden, outer=hidden)


def _mixtral(fields: Fields, name: str) -> Model:
    hidden = fields.count("hidden_size")
    feed = routed_feed(fields, layers_of(fields), "intermediate_size", fields.count("num_local_experts"))
    return assemble(fields, name, grouped(fields), feed, norms=2 * hidden, outer=hidden)


def _gpt_oss(fields: Fields, name: str) -> Model:
    """Experts in MXFP4 with biases, attention with biases and one sink a head (arXiv 2508.10925)."""
    hidden, heads = fields.count("hidden_size"), fields.count("num_attention_heads")
    experts = fields.count("num_local_experts", "num_experts")
    feed = routed_feed(fields, layers_of(fields), "intermediate_size", experts, biases=True)
    model = assemble(fields, name, grouped(fields, bias=True), feed, norms=2 * hidden + hidden + heads, outer=hidden)
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
    hidden, layers = fields.count("hidden_size"), layers_of(fields)
    dense, experts = fields.count_or(0, "first_k_dense_replace"), fields.count("n_routed_experts")
    shared, inner = fields.count_or(0, "n_shared_experts"), fields.count("moe_intermediate_size")
    routed = routed_feed(fields, layers - dense, "moe_intermediate_size", experts, biases=False)
    correction = experts if fields.word("topk_method", "") == "noaux_tc" else 0
    mlp = dense * 3 * hidden * fields.count("intermediate_size")
    mlp += (layers - dense) * (shared * 3 * hidden * inner + correction) + routed.parts[0].parameters
    part = Part(name="mlp", parameters=mlp, bytes=0.0, layers=layers, tensors=3)
    feed = Feed(parts=(part, routed.parts[1]), width=inner, experts=experts, experts_per_token=routed.experts_per_token)
    return assemble(fields, name, latent(fields), feed, norms=2 * hidden, outer=hidden)


def _gemma(fields: Fields, name: str) -> Model:
    return _llama(fields, name)


def _gemma2(fields: Fields, name: str) -> Model:
    """Norms before and after each half of a layer (arXiv 2408.00118)."""
    return _llama(fields, name, norms=4)


def _gemma3(fields: Fields, name: str) -> Model:
    """Gemma 2 with norms of queries and keys (arXiv 2503.19786); windows are counted as full attention."""
    return _llama(fields, name, norms=4, head_norms=True)


def _olmo2(fields: Fields, name: str) -> Model:
    """Norms of all queries and of all keys together (arXiv 2501.00656)."""
    attention = grouped(fields, bias=fields.flag("attention_bias"))
    hidden = fields.count("hidden_size")
    whole = hidden + attention.kv_elements // 2
    feed = dense_feed(fields, layers_of(fields), 3, "intermediate_size")
    return assemble(fields, name, attention, feed, norms=2 * hidden + whole, outer=hidden)


def _qwen2_moe(fields: Fields, name: str) -> Model:
    """Routed experts and one shared one with a gate."""
    hidden, layers = fields.count("hidden_size"), layers_of(fields)
    fields.count_or(0, "intermediate_size")
    routed = routed_feed(fields, layers, "moe_intermediate_size", fields.count("num_experts"))
    shared = layers * (3 * hidden * fields.count("shared_expert_intermediate_size") + hidden)
    attention = grouped(fields, bias=True)
    return assemble(fields, name, attention, _beside(routed, shared, layers), norms=2 * hidden, outer=hidden)


def _glm4_moe(fields: Fields, name: str) -> Model:
    """GLM-4.5 (arXiv 2508.06471): the first layers dense, the others with routed and shared experts."""
    hidden, layers = fields.count("hidden_size"), layers_of(fields)
    bias, norms = fields.flag("attention_bias"), fields.flag("use_qk_norm")
    dense, inner = fields.count_or(0, "first_k_dense_replace"), fields.count("moe_intermediate_size")
    experts, shared = fields.count("n_routed_experts"), fields.count_or(0, "n_shared_experts")
    routed = routed_feed(fields, layers - dense, "moe_intermediate_size", experts)
    more = dense * 3 * hidden * fields.count("intermediate_size")
    more += (layers - dense) * (shared * 3 * hidden * inner + experts)
    attention = grouped(fields, bias=bias, head_norms=norms)
    return assemble(fields, name, attention, _beside(routed, more, layers), norms=2 * hidden, outer=hidden)


def _llama4(fields: Fields, name: str) -> Model:
    """Every so manieth layer with routed experts and a shared one, the others dense and wider."""
    hidden, layers = fields.count("hidden_size"), layers_of(fields)
    inner = fields.count("intermediate_size")
    every = fields.count_or(1, "interleave_moe_layer_step") or 1
    sparse = layers // every
    routed = routed_feed(fields, sparse, "intermediate_size", fields.count("num_local_experts"))
    more = sparse * 3 * hidden * inner + (layers - sparse) * 3 * hidden * fields.count("intermediate_size_mlp")
    return assemble(fields, name, grouped(fields), _beside(routed, more, layers), norms=2 * hidden, outer=hidden)


def _beside(routed: Feed, more: int, layers: int) -> Feed:
    """Routed experts, with parameters that every token meets beside them."""
    router, experts = routed.parts
    part = replace(router, parameters=router.parameters + more, layers=layers, tensors=3)
    return replace(routed, parts=(part, experts))


def _opt(fields: Fields, name: str) -> Model:
    """OPT: biases everywhere, norms with bias, positions learned with an offset of two."""
    hidden = fields.count("hidden_size")
    attention = with_output_bias(grouped(fields, bias=True), hidden)
    feed = dense_feed(fields, layers_of(fields), 2, "ffn_dim", bias=True)
    outer = 2 * hidden + (fields.count("max_position_embeddings") + 2) * hidden
    return assemble(fields, name, attention, feed, norms=4 * hidden, outer=outer)


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
        parameters=layers_of(fields) * (2 * hidden * inner + hidden + inner),
        bytes=0.0,
        layers=layers_of(fields),
        tensors=2,
    )
    outer = 2 * hidden + fields.count("n_positions") * hidden
    return assemble(fields, name, attention, Feed(parts=(part,), width=inner), norms=4 * hidden, outer=outer)


def _bert(fields: Fields, name: str) -> Model:
    """BERT with its pooler; an encoder, so only training can be planned for it."""
    hidden = fields.count("hidden_size")
    attention = with_output_bias(grouped(fields, bias=True), hidden)
    feed = dense_feed(fields, layers_of(fields), 2, "intermediate_size", bias=True)
    tables = (fields.count("max_position_embeddings") + fields.count_or(2, "type_vocab_size")) * hidden
    pooler = hidden * hidden + hidden
    return assemble(fields, name, attention, feed, norms=4 * hidden, outer=2 * hidden + tables + pooler)


FAMILIES: dict[str, Callable[[Fields, str], Model]] = {
    "bert": _bert,
    "deepseek_v2": _deepseek,
    "deepseek_v3": _deepseek,
    "gemma": _gemma,
    "gemma2": _gemma2,
    "gemma3_text": _gemma3,
    "glm4_moe": _glm4_moe,
    "gpt2": _gpt2,
    "gpt_oss": _gpt_oss,
    "granite": _llama,
    "llama": _llama,
    "llama4_text": _llama4,
    "mistral": _llama,
    "mixtral": _mixtral,
    "olmo2": _olmo2,
    "opt": _opt,
    "phi3": _llama,
    "qwen2": _qwen2,
    "qwen2_moe": _qwen2_moe,
    "qwen3": _qwen3,
    "qwen3_moe": _qwen3_moe,
}
