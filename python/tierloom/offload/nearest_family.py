"""Which known architecture a ``config.json`` of an unknown ``model_type`` is counted as, by the fields that it has.

`architectures` uses it. New families mostly are an old one under a new name. What no rule here covers is refused, and
so is a field that says a size and that the chosen architecture does not read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

OF_THEIR_OWN = (
    "compress",
    "conv",
    "cross_attention",
    "kda",
    "latent",
    "linear",
    "mamba",
    "recurrent",
    "rwkv",
    "ssm",
    "state",
)
"""Words in the names of fields of layers that keep something else than keys and values."""

GATED = ("silu", "swiglu", "swish")
"""Activations of feed-forward blocks with a gate. Others stand in blocks of two matrices (GPT-NeoX, StarCoder2) and of
three (Gemma), a third of the size apart."""

WHERE = ("layer_types", "sliding_window_pattern", "use_sliding_window")
"""Fields that say which layers have a window."""

RULES: tuple[tuple[tuple[str, ...], str], ...] = (
    (("kv_lora_rank", "n_routed_experts", "index_topk"), "deepseek_v32"),
    (("kv_lora_rank", "n_routed_experts"), "deepseek_v3"),
    (("kv_lora_rank",), ""),
    (("n_routed_experts", "moe_intermediate_size"), "glm4_moe"),
    (("num_experts", "moe_intermediate_size", "shared_expert_intermediate_size"), "qwen2_moe"),
    (("num_experts", "moe_intermediate_size"), "qwen3_moe"),
    (("num_local_experts",), "mixtral"),
    (("use_qk_norm", "intermediate_size", "num_attention_heads"), "qwen3"),
    (("intermediate_size", "num_attention_heads"), "llama"),
)
"""Fields that are there and not nothing, and the architecture that has them; the first that fits."""


def nearest(config: Mapping[str, object]) -> str | None:
    """The known architecture that a config is counted as; none where there is no telling."""
    there = {name for name, value in config.items() if value}
    if (config.get("hidden_act") or GATED[0]) not in GATED:
        return None
    if any(word in name for name in there for word in OF_THEIR_OWN):
        return None
    return next((family for fields, family in RULES if there.issuperset(fields)), None) or None


def readable(config: Mapping[str, object], family: str) -> dict[str, object]:
    """The config under the architecture's name; a window of which nothing says whose it is counts as full attention.

    transformers leaves out what its base class has as a default: of `tie_word_embeddings` that is true, whatever the
    architecture's own class has.
    """
    placed = any(name in config for name in WHERE)
    kept = {name: value for name, value in config.items() if placed or name != "sliding_window"}
    return {"tie_word_embeddings": True} | kept | {"model_type": family}
