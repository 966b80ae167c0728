"""Models whose feed-forward block every token meets: from the fields of a ``config.json`` to a `Model`.

`architectures` lists them. Gemma 4 stands here with its larger sister, which has experts beside the block.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tierloom.offload.model import Model, Part
from tierloom.offload.model_parts import (
    Attention,
    Feed,
    assemble,
    by_window,
    dense_feed,
    either,
    grouped,
    heads_modules,
    kept,
    layers_of,
    listed,
    routed_feed,
    windowed,
    with_caches,
    with_matrices,
    with_output_bias,
    with_tables,
)

if TYPE_CHECKING:
    from tierloom.offload.fields import Fields


def llama(
    fields: Fields, name: str, *, bias: bool = False, head_norms: bool = False, norms: int = 2, every: int = 0
) -> Model:
    """Llama 2 and 3 (arXiv 2407.21783), and what is built as they are."""
    hidden = fields.count("hidden_size")
    attention = grouped(fields, bias=fields.flag("attention_bias", default=bias), head_norms=head_norms)
    feed = dense_feed(fields, layers_of(fields), 3, "intermediate_size")
    mixed = by_window(fields, attention, every)
    return assemble(fields, name, mixed, feed, norms=norms * hidden, outer=hidden)


def qwen2(fields: Fields, name: str) -> Model:
    """Qwen2 and 2.5 (arXiv 2412.15115): biases of queries, keys and values."""
    return llama(fields, name, bias=True)


def qwen3(fields: Fields, name: str) -> Model:
    """Qwen3 (arXiv 2505.09388): norms of queries and keys head by head."""
    return llama(fields, name, head_norms=True)


def gemma(fields: Fields, name: str) -> Model:
    """Gemma (arXiv 2403.08295)."""
    return llama(fields, name)


def gemma2(fields: Fields, name: str) -> Model:
    """Norms before and after each half of a layer, every other layer a window (arXiv 2408.00118)."""
    return llama(fields, name, norms=4, every=2)


def gemma3(fields: Fields, name: str) -> Model:
    """Gemma 2 with norms of queries and keys, five layers in six a window (arXiv 2503.19786)."""
    return llama(fields, name, norms=4, head_norms=True, every=6)


def gemma4(fields: Fields, name: str) -> Model:
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
        feed, norms = with_matrices(routed, scales, layers, dense.named), 7 * hidden + 1
    mixed = either(layers, listed(fields, "full_attention"), whole, near)
    return assemble(fields, name, mixed, feed, norms=norms, outer=hidden)


def olmo2(fields: Fields, name: str) -> Model:
    """Norms of all queries and of all keys together (arXiv 2501.00656)."""
    attention = grouped(fields, bias=fields.flag("attention_bias"))
    hidden = fields.count("hidden_size")
    whole = hidden + fields.count("num_key_value_heads", "num_attention_heads") * (hidden // attention.heads)
    feed = dense_feed(fields, layers_of(fields), 3, "intermediate_size")
    return assemble(fields, name, attention, feed, norms=2 * hidden + whole, outer=hidden)


def olmo3(fields: Fields, name: str) -> Model:
    """OLMo 2 with three layers in four a window (arXiv 2512.13961)."""
    model, attention = olmo2(fields, name), grouped(fields)
    return with_caches(model, by_window(fields, attention, every=4))


def cohere(fields: Fields, name: str) -> Model:
    """Command R and Aya 23 (2024): one norm a layer. Norms of heads in Command R+, a millionth of it, do not count."""
    return llama(fields, name, norms=1)


def cohere2(fields: Fields, name: str) -> Model:
    """Command R7B and A: one norm a layer, three layers in four a window (arXiv 2504.00698)."""
    return llama(fields, name, norms=1, every=4)


def glm4(fields: Fields, name: str) -> Model:
    """GLM-4-0414: norms before and after each half of a layer."""
    return llama(fields, name, norms=4)


def exaone4(fields: Fields, name: str) -> Model:
    """EXAONE 4.0 (arXiv 2507.11407): norms of heads; a pattern in letters where layers are not listed."""
    hidden, layers = fields.count("hidden_size"), layers_of(fields)
    attention, window = grouped(fields, head_norms=True), fields.count_or(0, "sliding_window")
    every = len(fields.word("sliding_window_pattern", "")) or layers
    full = listed(fields, "full_attention") or range(every - 1, layers, every)
    mixed = either(layers, full if window else range(layers), attention, windowed(attention, window))
    feed = dense_feed(fields, layers, 3, "intermediate_size")
    return assemble(fields, name, mixed, feed, norms=2 * hidden, outer=hidden)


def gemma3n(fields: Fields, name: str) -> Model:
    """Gemma 3n (2025): several streams, an embedding for each layer; late layers share the cache of earlier ones."""
    hidden, layers, streams = fields.count("hidden_size"), layers_of(fields), fields.count("altup_num_inputs")
    own, rank = fields.count("hidden_size_per_layer_input"), fields.count("laurel_rank")
    attention = grouped(fields, head_norms=True)
    streaming = streams**2 + streams**3 + hidden * streams + 2 * hidden
    small = 2 * hidden * rank + hidden + 2 * hidden * own + hidden
    feed = dense_feed(fields, layers, 3, "intermediate_size")
    model = assemble(fields, name, attention, feed, norms=4 * hidden + streaming + small, outer=hidden)
    table = fields.count("vocab_size_per_layer_input") * layers * own
    met = hidden * layers * own + own + 2 * (streams - 1) * hidden**2
    last = layers - fields.count_or(0, "num_kv_shared_layers")
    mixed = [([n for n in numbers if n < last], each) for numbers, each in by_window(fields, attention, every=5)]
    return with_caches(with_tables(model, table, met), mixed)


def opt(fields: Fields, name: str) -> Model:
    """OPT: biases everywhere, norms with bias, positions learned with an offset of two."""
    hidden = fields.count("hidden_size")
    attention = with_output_bias(grouped(fields, bias=True), hidden)
    feed = dense_feed(fields, layers_of(fields), 2, "ffn_dim", bias=True)
    outer = 2 * hidden + (fields.count("max_position_embeddings") + 2) * hidden
    return assemble(fields, name, attention, feed, norms=4 * hidden, outer=outer)


def gpt2(fields: Fields, name: str) -> Model:
    """GPT-2: biases everywhere, learned positions."""
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


def bert(fields: Fields, name: str) -> Model:
    """BERT with its pooler; an encoder, so only training can be planned for it."""
    hidden = fields.count("hidden_size")
    attention = with_output_bias(grouped(fields, bias=True), hidden)
    feed = dense_feed(fields, layers_of(fields), 2, "intermediate_size", bias=True)
    tables = (fields.count("max_position_embeddings") + fields.count_or(2, "type_vocab_size")) * hidden
    pooler = hidden * hidden + hidden
    return assemble(fields, name, attention, feed, norms=4 * hidden, outer=2 * hidden + tables + pooler)
