"""Models with routed experts: from the fields of a ``config.json`` to a `Model`.

`architectures` lists them; `state_space` has those of hybrids.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tierloom.offload.model import Model, Part, Tensor
from tierloom.offload.model_parts import (
    GATED,
    Attention,
    Feed,
    assemble,
    by_window,
    drafting,
    either,
    grouped,
    heads_modules,
    indexed,
    kept,
    latent,
    layers_of,
    named,
    routed_feed,
    windowed,
    with_matrices,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tierloom.offload.fields import Fields


def qwen3_moe(fields: Fields, name: str) -> Model:
    """Qwen3 with experts in every layer (arXiv 2505.09388)."""
    hidden = fields.count("hidden_size")
    fields.passed("intermediate_size")
    fields.passed("shared_expert_intermediate_size")
    feed = routed_feed(fields, layers_of(fields), "moe_intermediate_size", fields.count("num_experts"))
    attention = by_window(fields, grouped(fields, head_norms=True))
    return assemble(fields, name, attention, feed, norms=2 * hidden, outer=hidden)


SPARSE, SPARSE_NAMES = "block_sparse_moe.experts.0", ("w1", "w2", "w3")
"""What Mixtral and MiniMax call their experts."""


def mixtral(fields: Fields, name: str) -> Model:
    """Mixtral (arXiv 2401.04088): experts in every layer."""
    hidden = fields.count("hidden_size")
    experts = fields.count("num_local_experts")
    feed = routed_feed(fields, layers_of(fields), "intermediate_size", experts, block=SPARSE, names=SPARSE_NAMES)
    return assemble(fields, name, by_window(fields, grouped(fields)), feed, norms=2 * hidden, outer=hidden)


def minimax_m2(fields: Fields, name: str) -> Model:
    """MiniMax-M2 (2025): norms of all queries and of all keys together, and a bias of the router for each expert."""
    hidden, layers, heads = fields.count("hidden_size"), layers_of(fields), fields.count("num_attention_heads")
    width, kv_heads = fields.count("head_dim"), fields.count("num_key_value_heads")
    fields.passed("shared_intermediate_size")
    experts = fields.count("num_local_experts")
    routed = routed_feed(fields, layers, "intermediate_size", experts, block=SPARSE, names=SPARSE_NAMES)
    more = width * (heads + kv_heads) if fields.flag("use_qk_norm") else 0
    bias = layers * experts if fields.flag("use_routing_bias") else 0
    attention = grouped(fields, more=more)
    return assemble(fields, name, attention, with_matrices(routed, bias, layers), norms=2 * hidden, outer=hidden)


def gpt_oss(fields: Fields, name: str) -> Model:
    """Experts with biases, attention with biases and one sink a head, every other layer a window (arXiv 2508.10925)."""
    hidden, heads = fields.count("hidden_size"), fields.count("num_attention_heads")
    experts = fields.count("num_local_experts", "num_experts")
    feed = routed_feed(fields, layers_of(fields), "intermediate_size", experts, biases=True)
    attention = by_window(fields, grouped(fields, bias=True, more=hidden + heads), every=2)
    return assemble(fields, name, attention, feed, norms=2 * hidden, outer=hidden)


def deepseek(fields: Fields, name: str) -> Model:
    """Latent attention; the first layers dense, the others with routed and shared experts."""
    return _latent_experts(fields, name, latent(fields))


def deepseek_sparse(fields: Fields, name: str) -> Model:
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
    placed = with_matrices(routed, (layers - dense) * bias, layers, wide + small)
    return placed, beside + hidden * experts + experts * 3 * hidden * inner


def qwen2_moe(fields: Fields, name: str) -> Model:
    """Routed experts and one shared one with a gate."""
    hidden, layers = fields.count("hidden_size"), layers_of(fields)
    fields.passed("intermediate_size")
    routed = routed_feed(fields, layers, "moe_intermediate_size", fields.count("num_experts"))
    inner = fields.count("shared_expert_intermediate_size")
    shared = _matrices(range(layers), "mlp.shared_expert", hidden * inner)
    feed = with_matrices(routed, layers * hidden, layers, shared)
    return assemble(fields, name, grouped(fields, bias=True), feed, norms=2 * hidden, outer=hidden)


def glm4_moe(fields: Fields, name: str) -> Model:
    """GLM-4.5 (arXiv 2508.06471): the first layers dense, the others with routed and shared experts."""
    hidden, bias = fields.count("hidden_size"), fields.flag("attention_bias")
    attention = grouped(fields, bias=bias, head_norms=fields.flag("use_qk_norm"))
    feed, layer = _first_dense(fields, fields.count("n_routed_experts"))
    draft = _own_words(fields, drafting(fields, attention.parameters + 2 * hidden + layer, _drafts(fields)))
    return assemble(fields, name, attention, feed, norms=2 * hidden, outer=hidden, draft=draft)


def dots1(fields: Fields, name: str) -> Model:
    """dots.llm1 (arXiv 2506.05767): as GLM-4.5, always with norms of heads."""
    hidden = fields.count("hidden_size")
    feed, _ = _first_dense(fields, fields.count("n_routed_experts"))
    return assemble(fields, name, grouped(fields, head_norms=True), feed, norms=2 * hidden, outer=hidden)


def ernie4_5_moe(fields: Fields, name: str) -> Model:
    """ERNIE 4.5 (2025): the first layers dense, the others with routed and shared experts, under names of their own."""
    hidden, layers = fields.count("hidden_size"), layers_of(fields)
    first, inner = fields.count_or(0, "moe_layer_start_index"), fields.count("moe_intermediate_size")
    experts, shared = fields.count("moe_num_experts"), fields.count_or(0, "moe_num_shared_experts")
    routed = routed_feed(fields, range(first, layers), "moe_intermediate_size", experts)
    wide = _matrices(range(first), "mlp", hidden * fields.count("intermediate_size"))
    small = _matrices(range(first, layers), "mlp.shared_experts", shared * hidden * inner)
    feed = with_matrices(routed, (layers - first) * experts, layers, wide + small)
    return assemble(fields, name, grouped(fields), feed, norms=2 * hidden, outer=hidden)


def mimo_v2(fields: Fields, name: str) -> Model:
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
    feed = with_matrices(routed, len(sparse) * experts, layers, wide)
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


def llama4(fields: Fields, name: str) -> Model:
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
    return assemble(
        fields, name, mixed, with_matrices(routed, 0, layers, beside + dense), norms=2 * hidden, outer=hidden
    )


def _matrices(numbers: Iterable[int], block: str, size: int) -> tuple[Tensor, ...]:
    """The matrices of gated blocks, of so many parameters each."""
    return named(numbers, {f"{block}.{name}": size for name in GATED}) if size else ()
