"""Bits a weight by what a ``quantization_config`` says, module by module."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tierloom.errors import RequestError
from tierloom.offload import catalog
from tierloom.offload.architectures import model_of
from tierloom.offload.model import Model, Part


def matrix_bits(part: Part) -> set[float]:
    """Bits a weight of a part's matrices, or of the whole part where it is one matrix."""
    return {8 * each.bytes / each.parameters for each in part.named or (part,)}


def quantised(method: dict, **more: object) -> Model:
    fields = dict(catalog.model_entry("llama-3.1-8b").data["config"]) | {"quantization_config": method} | more
    return model_of(fields, "q")


def group(bits: int, kind: str = "int", *targets: str, **more: object) -> dict:
    """A group of compressed-tensors."""
    return {"targets": list(targets or ["Linear"]), "weights": {"num_bits": bits, "type": kind, **more}}


def compressed(*groups: dict, ignore: tuple[str, ...] = ("lm_head",), **more: object) -> dict:
    named = {f"group_{number}": each for number, each in enumerate(groups)}
    return {"quant_method": "compressed-tensors", "config_groups": named, "ignore": list(ignore)} | more


@pytest.mark.parametrize(
    ("method", "bits"),
    [
        ({"quant_method": "fp8"}, 8.0),
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, 8.0 + 32 / 128**2),
        ({"quant_method": "fbgemm_fp8", "activation_scale_ub": 1200.0}, 8.0),
        (compressed(group(4, group_size=32), format="pack-quantized"), 4.5),
        (compressed(group(4, group_size=128, symmetric=False), format="pack-quantized"), 4 + 20 / 128),
        (compressed(group(8, strategy="channel"), format="int-quantized"), 8.0),
        (compressed(group(8, "float", strategy="tensor"), format="float-quantized"), 8.0),
        (compressed(group(8, "float", block_structure=[128, 128])), 8.0 + 32 / 128**2),
        (compressed(group(4, "float", group_size=16), format="nvfp4-pack-quantized"), 4.5),
        (compressed(group(4, "float", group_size=32), format="mxfp4-pack-quantized"), 4.25),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, 4.5),
        ({"quant_method": "modelopt", "quant_algo": "FP8"}, 8.0),
        ({"quant_method": "gptq", "bits": 4, "group_size": 128, "sym": True}, 4 + 20 / 128),
        ({"quant_method": "gptq", "bits": 8, "group_size": -1}, 8.0),
        ({"quant_method": "awq", "bits": 4, "group_size": 128}, 4 + 20 / 128),
        ({"quant_method": "auto-round", "bits": 4, "group_size": 128, "data_type": "int"}, 4 + 20 / 128),
        ({"quant_method": "auto-round", "bits": 4, "group_size": 32, "data_type": "mx_fp"}, 4.25),
        ({"quant_method": "bitsandbytes", "load_in_8bit": True}, 8.0),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, 4.5),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_use_double_quant": True}, 4 + 0.12695),
        ({"quant_method": "hqq", "quant_config": {"weight_quant_params": {"nbits": 4, "group_size": 64}}}, 4.5),
        ({"quant_method": "torchao", "quant_type": "int4_weight_only", "quant_type_kwargs": {"group_size": 32}}, 5.0),
        ({"quant_method": "torchao", "quant_type": {"default": {"_type": "Float8WeightOnlyConfig"}}}, 8.0),
        ({"quant_method": "quanto", "weights": "int8"}, 8.0),
        ({"quant_method": "eetq"}, 8.0),
        ({"quant_method": "bitnet"}, 2.0),
        ({"quant_method": "aqlm", "num_codebooks": 2, "nbits_per_codebook": 8, "in_group_size": 8}, 2.0),
        ({"quant_method": "quark", "global_quant_config": {"weight": {"dtype": "fp4", "group_size": 32}}}, 4.25),
    ],
)
def test_each_method_has_its_bits_and_scales(method: dict, bits: float) -> None:
    model = quantised(method)
    stored = {part.name: matrix_bits(part) for part in model.parts}
    assert list(stored["attention"]) == list(stored["mlp"]) == pytest.approx([bits], rel=1e-5)
    assert stored["embedding"] == stored["head"] == {16}


def bits_by_layer(model: Model, module: str) -> list[float]:
    """Bits of one module of all layers."""
    named = (each for part in model.parts for each in part.named if each.name.endswith(module))
    return [8 * each.bytes / each.parameters for each in named]


FOUR = compressed(group(4, group_size=32))
ALL, EIGHT, FIRST = [16.0] * 32, [8.0] * 32, [16.0] + [8.0] * 31


@pytest.mark.parametrize(
    ("method", "queries", "down"),
    [
        ({"quant_method": "fp8", "ignore": ["model.layers.0.self_attn.q_proj"]}, FIRST, EIGHT),
        (
            {"quant_method": "fp8", "modules_to_not_convert": [f"model.layers.{n}.mlp" for n in range(32)]},
            EIGHT,
            ALL,
        ),
        ({"quant_method": "fp8", "modules_to_not_convert": ["model.layers.*.self_attn"]}, ALL, EIGHT),
        ({"quant_method": "fp8", "modules_not_quantized": ["self_attn"]}, ALL, EIGHT),
        ({"quant_method": "modelopt", "quant_algo": "FP8", "exclude_modules": ["*self_attn*"]}, ALL, EIGHT),
        (FOUR | {"ignore": ["re:.*self_attn.*"]}, ALL, [4.5] * 32),
        (FOUR | {"ignore": [r"re:model\.layers\.(?!0\.).*down_proj"]}, [4.5] * 32, [4.5] + [16.0] * 31),
        (
            compressed(group(8, "float"), group(4, "int", "re:.*mlp.*", group_size=32)),
            EIGHT,
            [4.5] * 32,
        ),
        (
            {"quant_method": "gptq", "bits": 8, "group_size": -1, "dynamic": {r"-:.*\.0\.self_attn\..*": {}}},
            FIRST,
            EIGHT,
        ),
        (
            {"quant_method": "gptq", "bits": 8, "group_size": -1}
            | {"modules_in_block_to_quantize": [["mlp.up_proj", "mlp.gate_proj"], ["mlp.down_proj"]]},
            ALL,
            EIGHT,
        ),
        (
            {"quant_method": "gptq", "bits": 8, "group_size": -1, "modules_in_block_to_quantize": ["self_attn.q_proj"]},
            EIGHT,
            ALL,
        ),
        (
            {"quant_method": "auto-round", "bits": 8, "group_size": -1}
            | {"extra_config": {"model.layers.0.self_attn.q_proj": {"bits": 16}}},
            FIRST,
            EIGHT,
        ),
        (
            {
                "quant_method": "bitsandbytes",
                "load_in_8bit": True,
                "llm_int8_skip_modules": ["model.layers.0.self_attn"],
            },
            FIRST,
            EIGHT,
        ),
    ],
)
def test_modules_that_are_named_stay_as_they_are(method: dict, queries: list[float], down: list[float]) -> None:
    model = quantised(method)
    assert bits_by_layer(model, "self_attn.q_proj") == queries
    assert bits_by_layer(model, "mlp.down_proj") == down


def test_a_method_may_name_what_it_takes_and_not_what_it_leaves() -> None:
    listed = {f"model.layers.{n}.mlp.down_proj": {"quant_algo": "NVFP4"} for n in range(32)}
    model = quantised({"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION", "quantized_layers": listed})
    assert bits_by_layer(model, "mlp.down_proj") == [4.5] * 32
    assert bits_by_layer(model, "mlp.up_proj") == ALL


@pytest.mark.parametrize(
    ("method", "head", "embedding"),
    [
        (compressed(group(4, group_size=32), ignore=()), 4.5, 16),
        ({"quant_method": "gptq", "bits": 4, "group_size": 128, "lm_head": True}, 4 + 20 / 128, 16),
        ({"bits": 4, "group_size": 64}, 4.5, 4.5),
        ({"bits": 4, "group_size": 64, "lm_head": {"bits": 8, "group_size": 64}}, 8.5, 4.5),
        ({"bits": 4, "group_size": 32, "mode": "mxfp4", "model.embed_tokens": False}, 4.25, 16),
        ({"quant_method": "exl3", "bits": 4.0, "head_bits": 6}, 6, 16),
    ],
)
def test_the_words_have_few_bits_only_where_the_config_says_so(method: dict, head: float, embedding: float) -> None:
    parts = {part.name: 8 * part.bytes / part.parameters for part in quantised(method).parts}
    assert parts["head"] == pytest.approx(head)
    assert parts["embedding"] == embedding


def test_experts_and_what_every_token_meets_may_differ() -> None:
    fields = dict(catalog.model_entry("deepseek-v3").data["config"])
    said = {"quant_method": "w4afp8", "weight_block_size": [128, 128]}
    bits = {part.name: matrix_bits(part) for part in model_of(fields | {"quantization_config": said}, "q").parts}
    assert bits["experts"] == {4 + 16 / 128}
    assert bits["mlp"] == bits["attention"] == {8 + 32 / 128**2}


@pytest.mark.parametrize(
    ("method", "told"),
    [
        ({"quant_method": "spqr", "bits": 3}, "method 'spqr', which is not known"),
        ({"load_in": 4}, "method '', which is not known"),
        ({"quant_method": "hqq"}, "method 'hqq' does not say how many bits a weight has"),
        ({"quant_method": "gptq"}, "'gptq' does not say how many bits a weight has"),
        ({"quant_method": "bitsandbytes"}, "neither `load_in_4bit` nor `load_in_8bit`"),
        ({"quant_method": "compressed-tensors"}, "num_bits"),
        (compressed(group(4), sparsity_config={"format": "sparse-24-bitmask"}), "sparse weights of the format"),
        (compressed(group(4), format="marlin-24"), "the format 'marlin-24'"),
        (compressed(group(4), ignore=("re:(",)), "no regular expression"),
        ({"quant_method": "torchao", "quant_type": "fpx"}, "`quant_type` is 'fpx'"),
        ({"quant_method": "modelopt", "quant_algo": "NEW"}, "'modelopt' does not say"),
    ],
)
def test_a_method_that_cannot_be_counted_is_named(method: dict, told: str, tmp_path: Path) -> None:
    fields = dict(catalog.model_entry("llama-3.1-8b").data["config"]) | {"quantization_config": method}
    (tmp_path / "config.json").write_text(json.dumps(fields))
    with pytest.raises(RequestError, match=told):
        catalog.load_model(str(tmp_path))


MODELOPT = {"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "NVFP4", "exclude_modules": ["lm_head"]}}


@pytest.mark.parametrize(
    ("name", "beside", "bits"),
    [
        ("hf_quant_config.json", MODELOPT, 4.5),
        ("quantize_config.json", {"bits": 4, "group_size": 128, "desc_act": True}, 4 + 20 / 128),
        ("quant_config.json", {"w_bit": 4, "q_group_size": 64, "zero_point": True, "version": "GEMM"}, 4 + 20 / 64),
    ],
)
def test_a_method_that_stands_in_a_file_of_its_own_is_read(
    tmp_path: Path, name: str, beside: dict, bits: float
) -> None:
    fields = dict(catalog.model_entry("llama-3.1-8b").data["config"])
    (tmp_path / "config.json").write_text(json.dumps(fields))
    (tmp_path / name).write_text(json.dumps(beside))
    attention = next(part for part in catalog.load_model(str(tmp_path)).parts if part.name == "attention")
    assert list(matrix_bits(attention)) == pytest.approx([bits])


@pytest.mark.parametrize(
    ("method", "bits"),
    [
        (compressed(group(8, "float"), kv_cache_scheme={"num_bits": 8, "type": "float"}), 8),
        ({"quant_method": "modelopt", "quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}, 8),
        (compressed(group(8, "float"), kv_cache_scheme=None), None),
    ],
)
def test_bits_of_the_cache_are_told_and_not_counted(method: dict, bits: int | None) -> None:
    model = quantised(method)
    assert model.kv_bytes_per_token == catalog.load_model("llama-3.1-8b").kv_bytes_per_token
    assert [f"say --kv-bits {bits}" in guess for guess in model.guesses] == ([True] if bits else [])


@pytest.mark.parametrize("key", ["quantization_config", "compression_config", "quantization"])
def test_what_the_whole_says_of_storage_is_true_of_its_language_model(key: str) -> None:
    fields = dict(catalog.model_entry("llama-3.1-8b").data["config"])
    method = {"quant_method": "mlx", "bits": 4, "group_size": 64}
    whole = {"model_type": "llava", "text_config": fields, key: method}
    assert model_of(whole, "x").weight_bytes == model_of(fields | {key: method}, "x").weight_bytes
    assert model_of(whole, "x").weight_bytes < 0.3 * model_of(fields, "x").weight_bytes
