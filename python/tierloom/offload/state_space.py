"""Hybrids: layers whose state has a constant size, with a few layers of attention among them.

`architectures` lists them. A state is a cache of one position: as large after one token as after a million.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tierloom.offload.model import STATE, UPDATE_FLOP, Cache, Model, Part
from tierloom.offload.model_parts import (
    DTYPE_BYTES,
    GATED,
    Attention,
    Feed,
    assemble,
    dense_feed,
    drafting,
    either,
    element_bytes,
    grouped,
    layers_of,
    listed,
    named,
    per_token,
    routed_feed,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tierloom.offload.fields import Fields
    from tierloom.offload.model import Tensor


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
    every = fields.count_or(4, "full_attention_interval") or 1
    full = listed(fields, "full_attention") or range(every - 1, layers, every)
    attention = grouped(fields, head_norms=True, gate=True)
    mixed = either(layers, full, attention, _delta(fields))
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
    modules = {
        "linear_attn.in_proj_qkvz": hidden * (2 * keys + 2 * values),
        "linear_attn.in_proj_ba": hidden * 2 * heads,
        "linear_attn.out_proj": values * hidden,
    }
    return Attention(
        parameters=sum(modules.values()) + convolved * taps + 2 * heads + value,
        modules=modules,
        caches=_state(fields, heads * width * value, convolved, taps),
        heads=heads,
    )


def _one_shared(fields: Fields, layers: int, experts: int) -> Feed:
    """Routed experts, and one for every token with a gate."""
    hidden, inner = fields.count("hidden_size"), fields.count("shared_expert_intermediate_size")
    fields.passed("intermediate_size")
    router, routed = routed_feed(fields, layers, "moe_intermediate_size", experts).parts
    shared = named(range(layers), {f"mlp.shared_expert.{name}": hidden * inner for name in GATED})
    return _feed(fields, router.parameters + layers * hidden, layers, routed, shared)


def _feed(fields: Fields, more: int, layers: int, routed: Part, matrices: tuple[Tensor, ...]) -> Feed:
    """Routed experts, and what every token meets beside them: matrices, and other parameters."""
    met = more + sum(each.parameters for each in matrices)
    part = Part(name="mlp", parameters=met, bytes=0.0, layers=layers, tensors=3, named=matrices)
    return Feed(
        parts=(part, routed),
        width=fields.count("moe_intermediate_size", "intermediate_size"),
        experts=routed.tensors,
        experts_per_token=per_token(fields),
    )


def _mamba2(
    fields: Fields, *, block: str, heads: int, width: int, groups: int, state: int, taps: int, bias: bool
) -> Attention:
    """Mamba-2 (arXiv 2405.21060): gate, input, both projections of the state and the steps come of one matrix."""
    hidden, inner = fields.count("hidden_size"), heads * width
    convolved = inner + 2 * groups * state
    modules = {f"{block}.in_proj": hidden * (inner + convolved + heads), f"{block}.out_proj": inner * hidden}
    convolution = convolved * (taps + (1 if bias else 0))
    return Attention(
        parameters=sum(modules.values()) + convolution + 3 * heads + inner,
        modules=modules,
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
    fields.passed("attention_head_dim", "head_dim")
    mamba = _mamba2(
        fields,
        block="mixer",
        heads=fields.count("mamba_num_heads"),
        width=fields.count("mamba_head_dim"),
        groups=fields.count("n_groups"),
        state=fields.count("ssm_state_size"),
        taps=fields.count("conv_kernel"),
        bias=bias,
    )
    where = {kind: [n for n, block in enumerate(blocks) if block == kind] for kind in BLOCKS.values()}
    mixed = ((where["attention"], _as_mixer(grouped(fields))), (where["mamba"], mamba))
    if where["moe"]:
        feed = _two_matrices(fields, where["moe"], where["mlp"])
    else:
        feed = dense_feed(fields, where["mlp"], 2, "intermediate_size", block="mixer")
    return assemble(fields, name, mixed, feed, norms=hidden, outer=hidden)


def _as_mixer(attention: Attention) -> Attention:
    """Nemotron calls every block of a layer its mixer."""
    return replace(attention, modules={f"mixer.{name[10:]}": size for name, size in attention.modules.items()})


def _two_matrices(fields: Fields, sparse: Sequence[int], dense: Sequence[int]) -> Feed:
    """Experts of two matrices; where they work in a narrower space, two more matrices lead in and out of it."""
    hidden, experts = fields.count("hidden_size"), fields.count("n_routed_experts")
    inner, latent = fields.count("moe_intermediate_size"), fields.count_or(0, "moe_latent_size")
    shared = fields.count_or(0, "n_shared_experts") * fields.count_or(0, "moe_shared_expert_intermediate_size")
    wide = fields.count_or(0, "intermediate_size")
    each = {f"mixer.experts.0.{name}": experts * (latent or hidden) * inner for name in GATED[1:]}
    beside = {f"mixer.shared_experts.{name}": hidden * shared for name in GATED[1:]}
    beside |= {f"mixer.{name}": hidden * latent for name in ("fc1_latent_proj", "fc2_latent_proj") if latent}
    routed = Part(
        name="experts",
        parameters=len(sparse) * sum(each.values()),
        bytes=0.0,
        layers=len(sparse),
        tensors=experts,
        active="routed",
        numbers=tuple(sparse),
        named=named(sparse, each),
    )
    matrices = named(sparse, beside) + named(dense, {f"mixer.{name}": hidden * wide for name in GATED[1:]})
    feed = _feed(fields, len(sparse) * (hidden * experts + experts), len(sparse) + len(dense), routed, matrices)
    met, _ = feed.parts
    return replace(feed, parts=(replace(met, numbers=tuple(sorted([*sparse, *dense]))), routed))


def granite_hybrid(fields: Fields, name: str) -> Model:
    """Granite 4.0 (2025): Mamba-2 or attention, then experts with a shared block, or the shared block alone."""
    hidden, layers = fields.count("hidden_size"), layers_of(fields)
    mamba = _mamba2(
        fields,
        block="mamba",
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
        beside = named(range(layers), {f"shared_mlp.{name}": hidden * shared for name in GATED})
        feed = _feed(fields, router.parameters, layers, routed, beside)
    else:
        fields.passed("intermediate_size", "num_experts_per_tok")
        feed = dense_feed(fields, layers, 3, "shared_intermediate_size", block="shared_mlp")
    mixed = either(layers, listed(fields, "attention"), grouped(fields), mamba)
    return assemble(fields, name, mixed, feed, norms=2 * hidden, outer=hidden)
