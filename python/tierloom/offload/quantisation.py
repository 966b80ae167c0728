"""Bits a weight by what a ``quantization_config`` says: the method's bits and scales, and which modules it leaves out.

`checkpoint` uses it. One function for each method in `METHODS`; what is not among them is refused, for its size would
be a guess. Bits count what stands beside the weights in the file: scales, zero points, code books' indices.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tierloom.errors import RequestError
from tierloom.offload.module_names import REGULAR, means

WHOLE: float | None = None
"""A module that stays in the bits of the activations."""

HALF = 16
"""Bits of a scale of GPTQ, AWQ and the integer formats of compressed-tensors."""

NV_GROUP, MX_GROUP, SMALL_SCALE = 16, 32, 8
"""Values that share an eight-bit scale in NVFP4 (NVIDIA Blackwell) and MXFP4 (Open Compute's microscaling formats)."""

NF4_BITS, NF4_NESTED_BITS = 4.0 + 32 / 64, 4.0 + 8 / 64 + 32 / (64 * 256)
"""bitsandbytes: 64 values share a scale of 32 bits, or of 8 whose own scale 256 of them share (QLoRA, 2305.14314)."""

LEFT = re.compile(r"ignore|skip|exclu|(^|_)not_")
"""Keys under which methods name the modules that they leave alone: ``ignored_layers``, ``modules_to_not_convert``."""

Config = Mapping[str, Any]


@dataclass(frozen=True)
class Scheme:
    """Bits of modules: the first rule that means a module, else those of all.

    Attributes:
        bits: Of matrices of layers.
        rules: Patterns, and the bits of what they mean.
        only: Parts that have matrices of that kind; none named is all.
        head: Bits of the output matrix.
        embedding: Bits of the input embedding.
    """

    bits: float | None
    rules: tuple[tuple[str, float | None], ...] = ()
    only: frozenset[str] = frozenset()
    head: float | None = WHOLE
    embedding: float | None = WHOLE

    def of(self, part: str, module: str) -> float | None:
        """Bits a weight of a module; none where it stays as it is."""
        found = next((bits for pattern, bits in self.rules if means(pattern, module)), self.bits)
        return WHOLE if self.only and part not in self.only else found


def scheme_of(config: Config, file: str) -> Scheme:
    """What a ``quantization_config`` says.

    Args:
        config: The table.
        file: What errors should call the document.

    Raises:
        RequestError: The method is not known, or says too little.
    """
    method = str(config.get("quant_method", "")).lower() or _untold(config)
    if method not in METHODS:
        message = (
            f"{file}: `quantization_config` has the method {method!r}, which is not known\n"
            f"hint: known are {', '.join(sorted(METHODS))}; or remove it and say --weight-bits"
        )
        raise RequestError(message)
    try:
        scheme = METHODS[method](config)
        for pattern, _ in scheme.rules:
            means(pattern, "lm_head")
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError) as problem:
        message = (
            f"{file}: `quantization_config` of the method {method!r} does not say how many bits a weight has: {problem}"
            "\nhint: remove it and say --weight-bits"
        )
        raise RequestError(message) from problem
    return scheme


def _untold(config: Config) -> str:
    """The method of a table that does not name it: ModelOpt's own file, and MLX."""
    if "quant_algo" in config:
        return "modelopt"
    return "mlx" if "group_size" in config and "bits" in config else ""


def grouped(bits: float, shared: float, group: object) -> float:
    """Bits a weight with what a group of weights shares; a group of none or of a whole row shares next to nothing."""
    if not 0 < bits <= HALF:
        message = f"{bits!r} bits"
        raise ValueError(message)
    return bits + (shared / group if isinstance(group, int) and group > 0 else 0.0)


def left_alone(config: Config) -> tuple[tuple[str, float | None], ...]:
    """Rules for the modules that the config names as not quantised."""
    lists = (value for key, value in config.items() if LEFT.search(key))
    return tuple((str(name), WHOLE) for named in lists if isinstance(named, list) for name in named)


def _awq(config: Config) -> Scheme:
    """A 16-bit scale and a zero point a group (arXiv 2306.00978); AutoAWQ's own file has other names for two keys."""
    bits = float(config.get("bits") or config["w_bit"])
    return Scheme(grouped(bits, HALF + bits, config.get("group_size", config.get("q_group_size"))), left_alone(config))


def _gptq(config: Config) -> Scheme:
    """As AWQ, the zero points also where all are equal; GPTQModel's `dynamic` has rules for modules.

    Optimum lists the modules that are quantised, step by step, where those are not all.
    """
    own = _awq(config)
    steps = config.get("modules_in_block_to_quantize") or ()
    listed = [str(name) for step in steps for name in ([step] if isinstance(step, str) else step)]
    rules = []
    for pattern, said in (config.get("dynamic") or {}).items():
        sign, _, expression = pattern.rpartition(":")
        bits = WHOLE if sign == "-" else _awq({**config, **said}).bits
        rules.append((f"{REGULAR}{expression}", bits))
    head = own.bits if config.get("lm_head") else WHOLE
    inside = tuple((name, own.bits) for name in listed)
    return Scheme(WHOLE if listed else own.bits, (*rules, *own.rules, *inside), head=head)


def _auto_round(config: Config) -> Scheme:
    """Formats of GPTQ, AWQ or microscaling; `extra_config` has rules for modules."""
    kind = str(config.get("data_type", "int"))
    if kind not in {"int", "mx_fp", "nv_fp"}:
        message = f"`data_type` is {kind!r}"
        raise ValueError(message)

    def bits_of(said: Config) -> float | None:
        bits = float(said["bits"])
        shared = HALF + bits if kind == "int" else SMALL_SCALE
        return WHOLE if bits >= HALF else grouped(bits, shared, said.get("group_size"))

    extra = (config.get("extra_config") or {}).items()
    rules = tuple((_dotted(name), bits_of({**config, **said})) for name, said in extra)
    head = next((bits for name, bits in rules if name.endswith("lm_head")), WHOLE)
    return Scheme(bits_of(config), (*rules, *left_alone(config)), head=head)


def _dotted(name: str) -> str:
    """AutoRound writes regular expressions without saying so."""
    return f"{REGULAR}{name}" if name.startswith(".*") or "\\" in name else name


def _fp8(config: Config) -> Scheme:
    """Eight bits with a 32-bit scale a block, a row or a matrix."""
    return Scheme(_blocks(config.get("weight_block_size")), left_alone(config))


def _blocks(block: object) -> float:
    if isinstance(block, list) and len(block) == 2 and all(isinstance(side, int) and side > 0 for side in block):
        return 8.0 + 32.0 / float(block[0] * block[1])
    return 8.0


def _w4afp8(config: Config) -> Scheme:
    """SGLang's DeepSeek: experts in four bits with a scale for 128 values, all else in FP8."""
    experts = grouped(4.0, HALF, int(config.get("group_size", 128)))
    return Scheme(_blocks(config.get("weight_block_size")), (*left_alone(config), ("experts", experts)))


def _mxfp4(config: Config) -> Scheme:
    """gpt-oss: the experts."""
    bits = grouped(4.0, SMALL_SCALE, MX_GROUP)
    return Scheme(bits, left_alone(config), only=frozenset({"experts"}))


def _bitsandbytes(config: Config) -> Scheme:
    """Four bits of NF4 or FP4, or eight of LLM.int8() with a scale a row (arXiv 2208.07339)."""
    four = config.get("load_in_4bit") or config.get("_load_in_4bit")
    if not four and not (config.get("load_in_8bit") or config.get("_load_in_8bit")):
        message = "neither `load_in_4bit` nor `load_in_8bit`"
        raise ValueError(message)
    nested = NF4_NESTED_BITS if config.get("bnb_4bit_use_double_quant") else NF4_BITS
    return Scheme(nested if four else 8.0, left_alone(config))


def _compressed(config: Config) -> Scheme:
    """Groups of modules by name, expression or class, each with its format; `ignore` goes before them."""
    if (config.get("sparsity_config") or {}).get("format", "dense") != "dense":
        message = f"sparse weights of the format {config['sparsity_config']['format']!r}"
        raise ValueError(message)
    if config.get("format") == "dense":
        return Scheme(WHOLE)
    groups = list((config.get("config_groups") or {}).values())
    if not groups:
        message = "no `num_bits` of any weights"
        raise ValueError(message)
    rules = list(left_alone(config))
    for group in groups:
        bits = _compressed_bits(group, str(group.get("format") or config.get("format") or ""))
        rules += [(str(target), bits) for target in group.get("targets", ["Linear"])]
    named = [(pattern, bits) for pattern, bits in rules if pattern != "Linear"]
    linear = next((bits for pattern, bits in rules if pattern == "Linear"), WHOLE)
    head = _head(named, linear if any("Linear" in group.get("targets", ()) for group in groups) else WHOLE)
    return Scheme(linear, tuple(named), head=head)


def _head(named: list[tuple[str, float | None]], otherwise: float | None) -> float | None:
    """The output matrix is a linear module as others are, unless it is named."""
    return next((bits for pattern, bits in named if means(pattern, "lm_head")), otherwise)


def _compressed_bits(group: Config, stored: str) -> float | None:
    """Integers have 16-bit scales, and zero points where they are not symmetric; small floats 8-bit scales."""
    weights = group.get("weights")
    if weights is None:
        return WHOLE
    bits = float(weights["num_bits"])
    if "marlin-24" in stored or stored == "fakequant":
        message = f"the format {stored!r}"
        raise ValueError(message)
    if weights.get("block_structure"):
        return _blocks(weights["block_structure"]) - 8.0 + bits
    if weights.get("type") == "float":
        group_size = weights.get("group_size") or (NV_GROUP if "nvfp4" in stored else None)
        return grouped(bits, SMALL_SCALE, group_size)
    zero = 0.0 if weights.get("symmetric", True) else bits
    return grouped(bits, HALF + zero, weights.get("group_size"))


MODELOPT: Mapping[str, float] = {
    "FP8": 8.0,
    "FP8_PER_CHANNEL_PER_TOKEN": 8.0,
    "FP8_PB_WO": 8.0 + 32 / 128**2,
    "INT8_SQ": 8.0,
    "W8A8_SQ_PER_CHANNEL": 8.0,
    "W8A16": 8.0,
    "MXFP4": 4.0 + SMALL_SCALE / MX_GROUP,
    "MXFP8": 8.0 + SMALL_SCALE / MX_GROUP,
    "NVFP4": 4.0 + SMALL_SCALE / NV_GROUP,
    "NVFP4_AWQ": 4.0 + SMALL_SCALE / NV_GROUP,
    "W4A16": 4.0 + HALF / 128,
    "W4A16_AWQ": 4.0 + HALF / 128,
    "W4A8_AWQ": 4.0 + HALF / 128,
}
"""Algorithms of NVIDIA's ModelOpt."""


def _modelopt(config: Config) -> Scheme:
    """One algorithm for all, or one for each module that `quantized_layers` lists."""
    algorithm = str(config.get("quant_algo") or "").upper()
    if algorithm == "MIXED_PRECISION":
        listed = config["quantized_layers"].items()
        rules = tuple((name, MODELOPT[str(said["quant_algo"]).upper()]) for name, said in listed)
        return Scheme(WHOLE, (*left_alone(config), *rules))
    return Scheme(MODELOPT[algorithm], left_alone(config))


def _mlx(config: Config) -> Scheme:
    """Apple's MLX: everything, the embedding too, with a scale and a bias a group; modules may have their own bits."""
    whole = _mlx_bits(config)
    rules = []
    for name, said in config.items():
        if said is False:
            rules.append((name, WHOLE))
        elif isinstance(said, Mapping):
            rules.append((name, _mlx_bits({**config, **said})))
    named = [(pattern, bits) for pattern, bits in rules]
    embedding = next((bits for pattern, bits in named if pattern.endswith("embed_tokens")), whole)
    return Scheme(whole, tuple(named), head=_head(named, whole), embedding=embedding)


def _mlx_bits(config: Config) -> float:
    bits, mode = float(config["bits"]), str(config.get("mode", "affine"))
    return grouped(bits, 2 * HALF if mode == "affine" else SMALL_SCALE, config["group_size"])


def _hqq(config: Config) -> Scheme:
    """A scale and a zero point of 16 bits a group."""
    weights = config["quant_config"]["weight_quant_params"]
    return Scheme(grouped(float(weights["nbits"]), 2 * HALF, weights.get("group_size")), left_alone(config))


TORCHAO = {"int4": 4.0, "int8": 8.0, "float8": 8.0}


def _torchao(config: Config) -> Scheme:
    """Names of configurations begin with the kind of number; four bits have a scale and a zero point a group."""
    said, extra = config["quant_type"], config.get("quant_type_kwargs") or {}
    if isinstance(said, Mapping):
        said = said["default"]
        extra, said = said.get("_data") or {}, said["_type"]
    name = str(said).lower()
    bits = next((bits for start, bits in TORCHAO.items() if name.startswith(start)), None)
    if bits is None:
        message = f"`quant_type` is {said!r}"
        raise ValueError(message)
    shared = extra.get("group_size", 128) if bits < 8 else None
    return Scheme(grouped(bits, 2 * HALF, shared), left_alone(config))


def _quanto(config: Config) -> Scheme:
    bits = {"int8": 8.0, "float8": 8.0, "int4": grouped(4.0, 2 * HALF, 128), "int2": grouped(2.0, 2 * HALF, 128)}
    return Scheme(bits[str(config["weights"])], left_alone(config))


def _quark(config: Config) -> Scheme:
    """AMD's Quark: one specification for all, others for modules by pattern."""

    def bits_of(said: Config) -> float | None:
        weight = said.get("weight")
        weight = weight[0] if isinstance(weight, list) else weight
        return WHOLE if weight is None else _quark_bits(weight)

    others = (config.get("layer_quant_config") or {}).items()
    rules = tuple((pattern, bits_of(said)) for pattern, said in others)
    return Scheme(bits_of(config["global_quant_config"]), (*left_alone(config), *rules))


QUARK = {"fp8_e4m3": 8.0, "fp8_e5m2": 8.0, "fp4": 4.0, "int8": 8.0, "uint8": 8.0, "int4": 4.0, "uint4": 4.0}


def _quark_bits(weight: Config) -> float:
    kind = str(weight["dtype"]).lower()
    shared = SMALL_SCALE if kind.startswith("fp") else HALF
    return grouped(QUARK[kind], shared, weight.get("group_size"))


def _exl(config: Config) -> Scheme:
    """ExLlama: mean bits of all matrices, scales included, and those of the head."""
    head = config.get("head_bits")
    return Scheme(grouped(float(config["bits"]), 0, None), head=float(head) if head else WHOLE)


def _aqlm(config: Config) -> Scheme:
    """Additive code books (arXiv 2401.06118): indices of a group of inputs."""
    books, index = int(config["num_codebooks"]), int(config["nbits_per_codebook"])
    outputs = int(config.get("out_group_size", 1))
    bits = books * index / (int(config["in_group_size"]) * outputs)
    return Scheme(grouped(bits, 0, None), left_alone(config))


def _eight(config: Config) -> Scheme:
    return Scheme(8.0, left_alone(config))


def _bitnet(config: Config) -> Scheme:
    """Weights of three values, four packed in a byte (arXiv 2402.17764)."""
    return Scheme(2.0, left_alone(config))


METHODS: Mapping[str, Callable[[Config], Scheme]] = {
    "aqlm": _aqlm,
    "auto-round": _auto_round,
    "autoround": _auto_round,
    "awq": _awq,
    "bitnet": _bitnet,
    "bitsandbytes": _bitsandbytes,
    "compressed-tensors": _compressed,
    "eetq": _eight,
    "exl2": _exl,
    "exl3": _exl,
    "fbgemm_fp8": _fp8,
    "fp8": _fp8,
    "gptq": _gptq,
    "hqq": _hqq,
    "intel/auto-round": _auto_round,
    "mlx": _mlx,
    "modelopt": _modelopt,
    "modelopt_fp4": _modelopt,
    "mxfp4": _mxfp4,
    "quanto": _quanto,
    "quark": _quark,
    "torchao": _torchao,
    "w4afp8": _w4afp8,
    "w8a8_fp8": _eight,
    "w8a8_int8": _eight,
}
"""Methods by what `quant_method` calls them."""
