"""Bits a weight as a checkpoint stores it, scales included, from ``quantization_config``.

`architectures` uses it. What a method leaves alone stays in the activations' bits: the embedding and the output
matrix always, attention or the parts that every token meets where the config says so.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from tierloom.errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tierloom.offload.fields import Fields
    from tierloom.offload.model import Model, Part

OUTSIDE = {"embedding", "head"}
"""Parts that no method below quantises."""

MX_GROUP, MX_SCALE = 32, 8
"""MXFP4: one eight-bit scale for 32 values (Open Compute microscaling formats, 2023)."""

NV_GROUP, NV_SCALE = 16, 8
"""NVFP4: one eight-bit scale for 16 values (NVIDIA Blackwell)."""

HALF = 16
"""Bits of a scale of GPTQ, AWQ and the integer formats of compressed-tensors."""

LEFT_ALONE: dict[str, re.Pattern[str]] = {
    "attention": re.compile(r"self_attn(?!\.(indexer|\w*norm))"),
    "mlp": re.compile(r"shared_experts?(?!_gate)|mlp\\?\.\("),
}
"""Parts, and what a list of modules that are not quantised calls them."""


def as_stored(model: Model, fields: Fields) -> Model:
    """The model with its weights in the bits that its checkpoint has.

    Raises:
        RequestError: The method is not known: the size would be counted wrong.
    """
    quantised = fields.table("quantization_config") or fields.table("compression_config")
    if not quantised:
        return model
    bits, only = _bits(quantised, fields)
    alone = OUTSIDE | _left_alone(quantised, model.layers)

    def stored(part: Part) -> Part:
        whole = part.name in alone or (only and part.name not in only)
        return part if whole else part.stored_in(bits)

    return replace(model, parts=tuple(map(stored, model.parts)), draft=model.draft and stored(model.draft))


def _bits(quantised: Mapping[str, object], fields: Fields) -> tuple[float, set[str]]:
    """Bits a weight, and the only parts that have them (none named: all)."""
    method, algorithm = str(quantised.get("quant_method", "")), str(quantised.get("quant_algo", ""))
    if method == "mxfp4":
        return 4.0 + MX_SCALE / MX_GROUP, {"experts"}
    if method == "compressed-tensors":
        return _compressed(quantised, fields), set()
    if algorithm == "NVFP4":
        return 4.0 + NV_SCALE / NV_GROUP, set()
    if method in {"fp8", "fbgemm_fp8"} or algorithm == "FP8":
        return 8.0 + 32.0 / _block(quantised), set()
    bits = quantised.get("bits")
    if isinstance(bits, int | float) and 0 < bits <= HALF:
        zero = 0.0 if quantised.get("sym") is True else float(bits)
        return float(bits) + _shared(HALF + zero, quantised.get("group_size")), set()
    message = (
        f"{fields.file}: `quantization_config` has the method {method!r}, which is not known\n"
        "hint: known are fp8, mxfp4, compressed-tensors, NVFP4 and FP8 of modelopt, and methods that say `bits`; "
        "or remove it and say --weight-bits"
    )
    raise RequestError(message)


def _shared(bits: float, group: object) -> float:
    """Bits a weight of what a group of weights shares; none where there are no groups."""
    return bits / group if isinstance(group, int) and group > 0 else 0.0


def _block(quantised: Mapping[str, object]) -> float:
    """Weights that share a scale: a block, or a whole matrix where none is named."""
    block = quantised.get("weight_block_size")
    if isinstance(block, list) and len(block) == 2 and all(isinstance(side, int) and side > 0 for side in block):
        return float(block[0] * block[1])
    return float("inf")


def _compressed(quantised: Mapping[str, object], fields: Fields) -> float:
    """Bits of the first group of compressed-tensors: integers have 16-bit scales, small floats 8-bit ones."""
    groups = quantised.get("config_groups")
    group: object = next(iter(groups.values()), {}) if isinstance(groups, dict) else {}
    weights = group.get("weights") if isinstance(group, dict) else None
    bits = weights.get("num_bits") if isinstance(weights, dict) else None
    if not isinstance(weights, dict) or not isinstance(bits, int) or not 0 < bits <= HALF:
        message = f"{fields.file}: `quantization_config` says no `num_bits` of its weights\nhint: say --weight-bits"
        raise RequestError(message)
    scale = HALF if weights.get("type") == "int" else MX_SCALE
    return bits + _shared(scale, weights.get("group_size"))


def _left_alone(quantised: Mapping[str, object], layers: int) -> set[str]:
    """Parts that the config names as not quantised: by a pattern for all layers, or in most layers one by one."""
    named: list[object] = []
    for key in ("ignore", "modules_to_not_convert", "ignored_layers", "exclude_modules"):
        value = quantised.get(key)
        named += value if isinstance(value, list) else []
    found = set()
    for part, pattern in LEFT_ALONE.items():
        names = [str(name) for name in named if pattern.search(str(name))]
        single = {layer for name in names for layer in re.findall(r"layers\.(\d+)\.", name)}
        if 2 * len(single) > layers or any(not re.search(r"layers\.\d", name) for name in names):
            found.add(part)
    return found
