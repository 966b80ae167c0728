"""Hybrids: layers whose state has a constant size, with a few layers of attention among them.

`architectures` lists them. A state is a cache of one position: as large after one token as after a million.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tierloom.offload.model import STATE, UPDATE_FLOP, Cache, Model, Part
from tierloom.offload.model_parts import (
    DTYPE_BYTES,
    Attention,
    Feed,
    assemble,
    dense_feed,
    drafting,
    element_bytes,
    grouped,
    layers_of,
    per_token,
    routed_feed,
)

if TYPE_CHECKING:
    from tierloom.offload.fields import Fields


def _state(fields: Fields, numbers: int, convolved: int, taps: int) -> tuple[Cache, Cache]:
    """The recurrent state in its own bits, and the last inputs of the convolution in those of an activation."""
    size = element_bytes(fields)
    kind = fields.word("mamba_ssm_cache_dtype", "") or fields.word("mamba_ssm_dtype", "")
    recurrent = Cache(
        elements=numbers, element_bytes=DTYPE_BYTES.get(kind, size), score_flop=UPDATE_FLOP * numbers, window=STATE
    )
    return recurrent, Cache(elements=convolved * (taps - 1), element_bytes=size, window=STATE)


def qwen3_next(fields: Fields, name: str) -> Model:
    """Qwen3-Next and Qwen3.5: three layers of gated delta networks (arXiv 2412.06464) to one of gated attention."""
    hidden, layers = fields.count("hidden_size"), layers_of(fields)
    listed, every = fields.words("layer_types"), fields.count_or(4, "full_attention_interval")
    full = listed.count("full_attention") if listed else layers // (every or 1)
    attention = grouped(fields, head_norms=True, gate=True)
    mixed = ((full, attention), (layers - full, _delta(fields)))
    experts = fields.count_or(0, "num_experts")
    feed = _one_shared(fields, layers, experts) if experts else dense_feed(fields, layers, 3, "intermediate_size")
    layer = attention.parameters + 2 * hidden + sum(part.parameters for part in feed.parts) // layers
    draft = drafting(fields, layer, fields.count_or(0, "mtp_num_hidden_layers", "num_nextn_predict_layers"))
    return assemble(fields, name, mixed, feed, norms=2 * hidden, outer=hidden, draft=draft)


def _delta(fields: Fields) -> Attention:
    hidden, taps = fields.count("hidden_size"), fields.count("linear_conv_kernel_dim")
    heads, value = fields.count("linear_num_value_heads"), fields.count("linear_value_head_dim")
    width = fields.count("linear_key_head_dim")
    keys, values = fields.count("linear_num_key_heads") * width, heads * value
    convolved = 2 * keys + values
    matrices = hidden * (2 * keys + 3 * values + 2 * heads)
    return Attention(
        parameters=matrices + convolved * taps + 2 * heads + value,
        caches=_state(fields, heads * width * value, convolved, taps),
        heads=heads,
    )


def _one_shared(fields: Fields, layers: int, experts: int) -> Feed:
    """Routed experts, and one for every token with a gate."""
    hidden, inner = fields.count("hidden_size"), fields.count("shared_expert_intermediate_size")
    fields.count_or(0, "intermediate_size")
    router, routed = routed_feed(fields, layers, "moe_intermediate_size", experts).parts
    return _feed(fields, router.parameters + layers * (3 * hidden * inner + hidden), layers, routed)


def _feed(fields: Fields, met: int, layers: int, routed: Part) -> Feed:
    part = Part(name="mlp", parameters=met, bytes=0.0, layers=layers, tensors=3)
    return Feed(
        parts=(part, routed),
        width=fields.count("moe_intermediate_size", "intermediate_size"),
        experts=routed.tensors,
        experts_per_token=per_token(fields),
    )


def _mamba2(fields: Fields, *, heads: int, width: int, groups: int, state: int, taps: int, bias: bool) -> Attention:
    """Mamba-2 (arXiv 2405.21060): gate, input, both projections of the state and the steps come of one matrix."""
    hidden, inner = fields.count("hidden_size"), heads * width
    convolved = inner + 2 * groups * state
    matrices = hidden * (inner + convolved + heads) + inner * hidden
    convolution = convolved * (taps + (1 if bias else 0))
    return Attention(
        parameters=matrices + convolution + 3 * heads + inner,
        caches=_state(fields, inner * state, convolved, taps),
        heads=heads,
        tensors=2,
    )


BLOCKS = {"M": "mamba", "*": "attention", "E": "moe", "-": "mlp"}
"""Letters of Nemotron-H's pattern."""


def nemotron_h(fields: Fields, name: str) -> Model:
    """Nemotron-H and Nemotron 3 (arXiv 2504.03624): each layer is one of four blocks, feed-forward of two matrices."""
    hidden, pattern = fields.count("hidden_size"), fields.word("hybrid_override_pattern", "")
    blocks = [BLOCKS.get(letter, "") for letter in pattern] or fields.words("layers_block_type")
    bias = fields.flag("use_conv_bias", default=True)
    fields.count_or(0, "attention_head_dim", "head_dim")
    mamba = _mamba2(
        fields,
        heads=fields.count("mamba_num_heads"),
        width=fields.count("mamba_head_dim"),
        groups=fields.count("n_groups"),
        state=fields.count("ssm_state_size"),
        taps=fields.count("conv_kernel"),
        bias=bias,
    )
    mixed = ((blocks.count("attention"), grouped(fields)), (blocks.count("mamba"), mamba))
    sparse, dense = blocks.count("moe"), blocks.count("mlp")
    feed = _two_matrices(fields, sparse) if sparse else dense_feed(fields, dense, 2, "intermediate_size")
    model = assemble(fields, name, mixed, feed, norms=hidden, outer=hidden)
    here = {"attention": {"attention", "mamba"}, "mlp": {"moe", "mlp"}, "experts": {"moe"}}
    parts = (
        replace(part, numbers=tuple(n for n, block in enumerate(blocks) if block in here.get(part.name, ())))
        for part in model.parts
    )
    return replace(model, parts=tuple(parts))


def _two_matrices(fields: Fields, layers: int) -> Feed:
    """Experts of two matrices; where they work in a narrower space, two more matrices lead in and out of it."""
    hidden, experts = fields.count("hidden_size"), fields.count("n_routed_experts")
    inner, latent = fields.count("moe_intermediate_size"), fields.count_or(0, "moe_latent_size")
    shared = fields.count_or(0, "n_shared_experts") * fields.count_or(0, "moe_shared_expert_intermediate_size")
    fields.count_or(0, "intermediate_size")
    met = 2 * hidden * shared + hidden * experts + experts + 2 * hidden * latent
    routed = Part(
        name="experts",
        parameters=layers * experts * 2 * (latent or hidden) * inner,
        bytes=0.0,
        layers=layers,
        tensors=experts,
        active="routed",
    )
    return _feed(fields, layers * met, layers, routed)


def granite_hybrid(fields: Fields, name: str) -> Model:
    """Granite 4.0 (2025): Mamba-2 or attention, then experts with a shared block, or the shared block alone."""
    hidden, layers = fields.count("hidden_size"), layers_of(fields)
    full = fields.words("layer_types").count("attention")
    mamba = _mamba2(
        fields,
        heads=fields.count("mamba_n_heads"),
        width=fields.count("mamba_d_head"),
        groups=fields.count("mamba_n_groups"),
        state=fields.count("mamba_d_state"),
        taps=fields.count("mamba_d_conv"),
        bias=fields.flag("mamba_conv_bias", default=True),
    )
    experts, shared = fields.count_or(0, "num_local_experts"), fields.count("shared_intermediate_size")
    if experts:
        router, routed = routed_feed(fields, layers, "intermediate_size", experts).parts
        feed = _feed(fields, router.parameters + layers * 3 * hidden * shared, layers, routed)
    else:
        fields.count_or(0, "intermediate_size", "num_experts_per_tok")
        feed = dense_feed(fields, layers, 3, "shared_intermediate_size")
    mixed = ((full, grouped(fields)), (layers - full, mamba))
    return assemble(fields, name, mixed, feed, norms=2 * hidden, outer=hidden)
