"""From the fields of a Hugging Face ``config.json`` to a `Model`.

An architecture is one function here and one line in `FAMILIES`; tests hold the counts of parameters against
the published totals. Of models that also see or hear, the language model is read (``text_config``).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tierloom.errors import RequestError
from tierloom.offload.checkpoint import as_stored
from tierloom.offload.fields import Fields
from tierloom.offload.model import Model, Part, Tensor
from tierloom.offload.model_parts import (
    GATED,
    Attention,
    Feed,
    assemble,
    by_window,
    dense_feed,
    drafting,
    either,
    grouped,
    heads_modules,
    indexed,
    kept,
    latent,
    layers_of,
    listed,
    named,
    routed_feed,
    windowed,
    with_output_bias,
)
from tierloom.offload.nearest_family import nearest, readable
from tierloom.offload.state_space import granite_hybrid, nemotron_h, qwen3_next

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping


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
        near = nearest(config)
        if near:
            return _counted_as(near, model_of(readable(config, near), name, file), family)
        message = (
            f"{file}: `model_type` {family!r} is not known\nhint: known are {', '.join(sorted(FAMILIES))}; "
            "if it is built as one of them, name that one there"
        )
        raise RequestError(message)
    model = FAMILIES[family](fields, name)
    fields.refuse_unread_sizes()
    return replace(as_stored(model, fields), guesses=fields.guesses)


def _counted_as(near: str, model: Model, family: str) -> Model:
    """A model of an unknown family, with the word that it was counted as another."""
    told = f"`model_type` {family!r} is not known: counted as {near!r}, whose fields it has"
    return replace(model, family=family, guesses=(told, *model.guesses))


def _language_model(config: Mapping[str, object], inner: Mapping[str, object]) -> dict[str, object]:
    """The language model of one that also sees or hears, with what the whole says of numbers and storage."""
    shared = ("torch_dtype", "dtype", "tie_word_embeddings", "quantization_config")
    return {name: config[name] for name in shared if name in config} | dict(inner)


def _llama(
    fields: Fields, name: str, *, bias: bool = False, head_norms: bool = False, norms: int = 2, every: int = 0
) -> Model:
    hidden = fields.count("hidden_size")
    attention = grouped(fields, bias=fields.flag("attention_bias", default=bias), head_norms=head_norms)
    feed = dense_feed(fields, layers_of(fields), 3, "intermediate_size")
    mixed = by_window(fields, attention, every)
    return assemble(fields, name, mixed, feed, norms=norms * hidden, outer=hidden)


def _qwen2(fields: Fields, name: str) -> Model:
    return _llama(fields, name, bias=True)


def _qwen3(fields: Fields, name: str) -> Model:
    return _llama(fields, name, head_norms=True)


def _qwen3_moe(fields: Fields, name: str) -> Model:
    hidden = fields.count("hidden_size")
    fields.passed("intermediate_size")
    fields.passed("shared_expert_intermediate_size")
    feed = routed_feed(fields, layers_of(fields), "moe_intermediate_size", fields.count("num_experts"))
    attention = by_window(fields, grouped(fields, head_norms=True))
    return assemble(fields, name, attention, feed, norms=2 * hidden, outer=hidden)


SPARSE, SPARSE_NAMES = "block_sparse_moe.experts.0", ("w1", "w2", "w3")
"""What Mixtral and MiniMax call their experts."""


def _mixtral(fields: Fields, name: str) -> Model:
    hidden = fields.count("hidden_size")
    experts = fields.count("num_local_experts")
    feed = routed_feed(fields, layers_of(fields), "intermediate_size", experts, block=SPARSE, names=SPARSE_NAMES)
    return assemble(fields, name, by_window(fields, grouped(fields)), feed, norms=2 * hidden, outer=hidden)


def _minimax_m2(fields: Fields, name: str) -> Model:
    """MiniMax-M2 (2025): norms of all queries and of all keys together, and a bias of the router for each expert."""
    hidden, layers, heads = fields.count("hidden_size"), layers_of(fields), fields.count("num_attention_heads")
    width, kv_heads = fields.count("head_dim"), fields.count("num_key_value_heads")
    fields.passed("shared_intermediate_size")
    experts = fields.count("num_local_experts")
    routed = routed_feed(fields, layers, "intermediate_size", experts, block=SPARSE, names=SPARSE_NAMES)
    more = width * (heads + kv_heads) if fields.flag("use_qk_norm") else 0
    bias = layers * experts if fields.flag("use_routing_bias") else 0
    attention = grouped(fields, more=more)
    return assemble(fields, name, attention, _beside(routed, bias, layers), norms=2 * hidden, outer=hidden)


def _gpt_oss(fields: Fields, name: str) -> Model:
    """Experts with biases, attention with biases and one sink a head, every other layer a window (arXiv 2508.10925)."""
    hidden, heads = fields.count("hidden_size"), fields.count("num_attention_heads")
    experts = fields.count("num_local_experts", "num_experts")
    feed = routed_feed(fields, layers_of(fields), "intermediate_size", experts, biases=True)
    attention = by_window(fields, grouped(fields, bias=True, more=hidden + heads), every=2)
    return assemble(fields, name, attention, feed, norms=2 * hidden, outer=hidden)


def _deepseek(fields: Fields, name: str) -> Model:
    """Latent attention; the first layers dense, the others with routed and shared experts."""
    return _latent_experts(fields, name, latent(fields))


def _deepseek_sparse(fields: Fields, name: str) -> Model:
    """DeepSeek-V3.2 and GLM-5: the same, with an indexer that chooses the positions to attend to."""
    return _latent_experts(fields, name, indexed(fields, latent(fields)))


def _latent_experts(fields: Fields, name: str, attention: Attention) -> Model:
    bias = fields.count("n_routed_experts") if fields.word("topk_method", "") == "noaux_tc" else 0
    feed, layer = _first_dense(fields, bias)
    hidden = fields.count("hidden_size")
    draft = _own_words(fields, drafting(fields, attention.parameters + 2 * hidden + layer, _drafts(fields)))
    return assemble(fields, name, attention, feed, norms=2 * hidden, outer=hidden, draft=draft)


def _drafts(fields: Fields) -> int:
    return fields.count_or(0, "num_nextn_predict_layers")


def _own_words(fields: Fields, draft: Part | None) -> Part | None:
    """A draft whose checkpoint repeats the embedding and the output matrix (DeepSeek-V3's README counts 14 billion)."""
    words = 2 * fields.count("vocab_size") * fields.count("hidden_size")
    return draft and replace(draft, parameters=draft.parameters + draft.layers * words)


def _first_dense(fields: Fields, bias: int) -> tuple[Feed, int]:
    """The first layers dense, the others with routed and shared experts; and the parameters of one of the others.

    Args:
        fields: The config.
        bias: Biases of a layer's router.
    """
    hidden, layers = fields.count("hidden_size"), layers_of(fields)
    dense, experts = fields.count_or(0, "first_k_dense_replace"), fields.count("n_routed_experts")
    shared, inner = fields.count_or(0, "n_shared_experts"), fields.count("moe_intermediate_size")
    routed = routed_feed(fields, range(dense, layers), "moe_intermediate_size", experts)
    beside = shared * 3 * hidden * inner + bias
    wide = _matrices(range(dense), "mlp", hidden * fields.count("intermediate_size"))
    small = _matrices(range(dense, layers), "mlp.shared_experts", shared * hidden * inner)
    placed = _beside(routed, (layers - dense) * bias, layers, wide + small)
    return placed, beside + hidden * experts + experts * 3 * hidden * inner


def _gemma(fields: Fields, name: str) -> Model:
    return _llama(fields, name)


def _gemma2(fields: Fields, name: str) -> Model:
    """Norms before and after each half of a layer, every other layer a window (arXiv 2408.00118)."""
    return _llama(fields, name, norms=4, every=2)


def _gemma3(fields: Fields, name: str) -> Model:
    """Gemma 2 with norms of queries and keys, five layers in six a window (arXiv 2503.19786)."""
    return _llama(fields, name, norms=4, head_norms=True, every=6)


def _gemma4(fields: Fields, name: str) -> Model:
    """Gemma 3 with wider heads where a layer looks at everything, whose values are its keys before their norm.

    Where it has experts, they stand beside the dense block, with norms of their own and scales of the router.
    """
    hidden, layers, heads = fields.count("hidden_size"), layers_of(fields), fields.count("num_attention_heads")
    for unknown in ("hidden_size_per_layer_input", "num_kv_shared_layers"):
        fields.none(unknown)
    width, groups = fields.count("global_head_dim"), fields.count("num_global_key_value_heads", "num_key_value_heads")
    values = 0 if fields.flag("attention_k_eq_v") else groups * width
    modules = heads_modules(hidden, heads * width, groups * width, values, heads * width)
    whole = Attention(
        parameters=sum(modules.values()) + 2 * width,
        caches=(kept(fields, 2 * groups * width, 4 * heads * width),),
        heads=heads,
        modules=modules,
    )
    near = windowed(grouped(fields, head_norms=True), fields.count("sliding_window"))
    feed, norms = dense_feed(fields, layers, 3, "intermediate_size"), 4 * hidden + 1
    if fields.flag("enable_moe_block"):
        experts = fields.count("num_experts")
        routed = routed_feed(fields, layers, "moe_intermediate_size", experts)
        scales, (dense,) = layers * (hidden + experts), feed.parts
        feed, norms = _beside(routed, scales, layers, dense.named), 7 * hidden + 1
    mixed = either(layers, listed(fields, "full_attention"), whole, near)
    return assemble(fields, name, mixed, feed, norms=norms, outer=hidden)


def _olmo2(fields: Fields, name: str) -> Model:
    """Norms of all queries and of all keys together (arXiv 2501.00656)."""
    attention = grouped(fields, bias=fields.flag("attention_bias"))
    hidden = fields.count("hidden_size")
    whole = hidden + fields.count("num_key_value_heads", "num_attention_heads") * (hidden // attention.heads)
    feed = dense_feed(fields, layers_of(fields), 3, "intermediate_size")
    return assemble(fields, name, attention, feed, norms=2 * hidden + whole, outer=hidden)


def _qwen2_moe(fields: Fields, name: str) -> Model:
    """Routed experts and one shared one with a gate."""
    hidden, layers = fields.count("hidden_size"), layers_of(fields)
    fields.passed("intermediate_size")
    routed = routed_feed(fields, layers, "moe_intermediate_size", fields.count("num_experts"))
    inner = fields.count("shared_expert_intermediate_size")
    shared = _matrices(range(layers), "mlp.shared_expert", hidden * inner)
    feed = _beside(routed, layers * hidden, layers, shared)
    return assemble(fields, name, grouped(fields, bias=True), feed, norms=2 * hidden, outer=hidden)


def _glm4_moe(fields: Fields, name: str) -> Model:
    """GLM-4.5 (arXiv 2508.06471): the first layers dense, the others with routed and shared experts."""
    hidden, bias = fields.count("hidden_size"), fields.flag("attention_bias")
    attention = grouped(fields, bias=bias, head_norms=fields.flag("use_qk_norm"))
    feed, layer = _first_dense(fields, fields.count("n_routed_experts"))
    draft = _own_words(fields, drafting(fields, attention.parameters + 2 * hidden + layer, _drafts(fields)))
    return assemble(fields, name, attention, feed, norms=2 * hidden, outer=hidden, draft=draft)


def _mimo_v2(fields: Fields, name: str) -> Model:
    """MiMo-V2-Flash (2025): narrow values; most layers a window, with a sink a head."""
    hidden, layers = fields.count("hidden_size"), layers_of(fields)
    far = [layer for layer, kind in enumerate(fields.words("hybrid_layer_pattern")) if kind == "0"]
    dense = [layer for layer, kind in enumerate(fields.words("moe_layer_freq")) if kind == "0"]
    sparse, experts = [each for each in range(layers) if each not in dense], fields.count("n_routed_experts")
    fields.passed("n_shared_experts")
    routed = routed_feed(fields, sparse, "moe_intermediate_size", experts)
    wide = _matrices(dense, "mlp", hidden * fields.count("intermediate_size"))
    near = windowed(_narrow(fields, "swa_", sinks=True), fields.count("sliding_window"))
    mixed = either(layers, far, _narrow(fields, "", sinks=False), near)
    feed = _beside(routed, len(sparse) * experts, layers, wide)
    return assemble(fields, name, mixed, feed, norms=2 * hidden, outer=hidden)


def _narrow(fields: Fields, kind: str, *, sinks: bool) -> Attention:
    """Grouped-query attention whose values are narrower than its keys."""
    hidden, heads = fields.count("hidden_size"), fields.count(f"{kind}num_attention_heads")
    groups, width = fields.count(f"{kind}num_key_value_heads"), fields.count(f"{kind}head_dim")
    value = fields.count(f"{kind}v_head_dim")
    modules = heads_modules(hidden, heads * width, groups * width, groups * value, heads * value)
    return Attention(
        parameters=sum(modules.values()) + (heads if sinks else 0),
        modules=modules,
        caches=(kept(fields, groups * (width + value), 2 * heads * (width + value)),),
        heads=heads,
    )


def _llama4(fields: Fields, name: str) -> Model:
    """Every so manieth layer with routed experts and a shared one, the others dense and wider.

    Three layers in four attend within chunks, which are counted as windows: the most that a chunk keeps.
    """
    hidden, layers = fields.count("hidden_size"), layers_of(fields)
    inner, wide = fields.count("intermediate_size"), fields.count("intermediate_size_mlp")
    every = fields.count_or(1, "interleave_moe_layer_step") or 1
    sparse, experts = range(every - 1, layers, every), fields.count("num_local_experts")
    routed = routed_feed(fields, sparse, "intermediate_size", experts, block="feed_forward.experts.0")
    beside = _matrices(sparse, "feed_forward.shared_expert", hidden * inner)
    dense = _matrices((n for n in range(layers) if n not in sparse), "feed_forward", hidden * wide)
    attention, chunk = grouped(fields), fields.count_or(0, "attention_chunk_size")
    step = fields.count_or(4, "no_rope_layer_interval") or 1
    full = range(step - 1, layers, step) if chunk else range(layers)
    mixed = either(layers, full, attention, windowed(attention, chunk))
    return assemble(fields, name, mixed, _beside(routed, 0, layers, beside + dense), norms=2 * hidden, outer=hidden)


def _matrices(numbers: Iterable[int], block: str, size: int) -> tuple[Tensor, ...]:
    """The matrices of gated blocks, of so many parameters each."""
    return named(numbers, {f"{block}.{name}": size for name in GATED}) if size else ()


def _beside(routed: Feed, more: int, layers: int, matrices: tuple[Tensor, ...] = ()) -> Feed:
    """Routed experts, with matrices and other parameters that every token meets beside them."""
    router, experts = routed.parts
    parameters = router.parameters + more + sum(each.parameters for each in matrices)
    part = replace(router, parameters=parameters, layers=layers, tensors=3, named=matrices)
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
        caches=(kept(fields, 2 * heads * width, 4 * heads * width),),
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
    "deepseek_v32": _deepseek_sparse,
    "gemma": _gemma,
    "gemma2": _gemma2,
    "gemma3_text": _gemma3,
    "gemma4_text": _gemma4,
    "glm4_moe": _glm4_moe,
    "glm4_moe_lite": _deepseek,
    "glm_moe_dsa": _deepseek_sparse,
    "gpt2": _gpt2,
    "gpt_oss": _gpt_oss,
    "granite": _llama,
    "granitemoehybrid": granite_hybrid,
    "kimi_k2": _deepseek,
    "llama": _llama,
    "llama4_text": _llama4,
    "mimo_v2_flash": _mimo_v2,
    "mimo": _qwen2,
    "minimax_m2": _minimax_m2,
    "mistral": _llama,
    "mixtral": _mixtral,
    "nemotron_h": nemotron_h,
    "olmo2": _olmo2,
    "opt": _opt,
    "phi3": _llama,
    "qwen2": _qwen2,
    "qwen2_moe": _qwen2_moe,
    "qwen3": _qwen3,
    "qwen3_5_moe_text": qwen3_next,
    "qwen3_5_text": qwen3_next,
    "qwen3_moe": _qwen3_moe,
    "qwen3_next": qwen3_next,
    "qwen3_vl_moe_text": _qwen3_moe,
    "qwen3_vl_text": _qwen3,
}
