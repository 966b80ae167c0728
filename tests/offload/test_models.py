"""Models by their fields: parameters counted exactly, caches as published, wrong files answered."""

from __future__ import annotations

import json
from math import prod
from pathlib import Path

import gguf_files
import pytest

from tierloom.errors import RequestError
from tierloom.offload import catalog
from tierloom.offload.architectures import FAMILIES, model_of

EXACT, ROUND = 0.001, 0.02
"""How close a count comes to a published number of at least four digits, and to one that is rounded or has more in it:
a vision encoder, layers that predict ahead."""

KIB_PER_TOKEN = {
    "opt-66b": 2304,
    "llama-65b": 2560,
    "llama-2-70b": 320,
    "llama-3.1-8b": 128,
    "llama-3.1-70b": 320,
    "llama-3.1-405b": 504,
    "qwen3-32b": 256,
    "qwen3-235b-a22b": 188,
    "mixtral-8x7b": 128,
    "gpt-oss-120b": 36,
    "deepseek-v3": 68.625,
}


@pytest.mark.parametrize("name", catalog.model_names())
def test_parameters_add_up_to_the_published_number(name: str) -> None:
    published = catalog.model_entry(name).data["parameters"]["value"]
    digits = len(f"{published:.5g}".partition("e")[0].replace(".", "").rstrip("0"))
    assert catalog.load_model(name).parameters == pytest.approx(published, rel=EXACT if digits >= 4 else ROUND)


@pytest.mark.parametrize(("name", "kib"), KIB_PER_TOKEN.items())
def test_a_token_caches_what_its_architecture_keeps(name: str, kib: float) -> None:
    assert catalog.load_model(name).kv_bytes_per_token == kib * 1024


@pytest.mark.parametrize("name", catalog.model_names())
def test_every_preset_says_where_it_comes_from(name: str) -> None:
    data = catalog.model_entry(name).data
    assert data["source"]
    assert data["parameters"]["source"]
    assert {data["kind"], data["parameters"]["kind"]} <= catalog.KINDS
    assert data["config"]["model_type"] in FAMILIES


@pytest.mark.parametrize("name", catalog.gpu_names())
def test_every_figure_of_a_gpu_is_above_nothing_and_has_a_source(name: str) -> None:
    gpu = catalog.load_gpu(name)
    assert gpu.prefill_flop_s > gpu.decode_flop_s > 0.0
    assert all(catalog.gpu_entry(name).data[figure]["source"] for figure in catalog.FIGURES)


def test_experts_count_once_a_token_and_all_in_a_large_batch() -> None:
    model = catalog.load_model("mixtral-8x7b")
    experts = next(part for part in model.parts if part.name == "experts")
    assert model.active_share(experts, 1) == pytest.approx(2 / 8)
    assert model.active_share(experts, 4096) == pytest.approx(1.0)
    assert model.flop_per_token == pytest.approx(2 * 12.6e9, rel=0.02), "12.9 billion active, less the embedding"


def test_weights_can_be_stored_in_fewer_bits() -> None:
    model = catalog.load_model("llama-7b")
    assert model.with_weight_bits(4.5).weight_bytes == pytest.approx(model.weight_bytes * 4.5 / 16)
    assert model.with_kv_bits(8).kv_bytes_per_token == model.kv_bytes_per_token / 2


def config(name: str) -> dict:
    return dict(catalog.model_entry(name).data["config"])


OTHERS = {
    "gemma-2-9b": (
        9.24e9,
        "gemma2",
        (42, 3584, 14336, 16, 256000),
        {"num_key_value_heads": 8, "head_dim": 256, "sliding_window": 4096},
    ),
    "phi-3-mini": (3.82e9, "phi3", (32, 3072, 8192, 32, 32064), {"num_key_value_heads": 32}),
    "olmo-2-7b": (7.30e9, "olmo2", (32, 4096, 11008, 32, 100352), {"num_key_value_heads": 32}),
    "qwen1.5-moe-a2.7b": (
        14.3e9,
        "qwen2_moe",
        (24, 2048, 5632, 16, 151936),
        {
            "num_key_value_heads": 16,
            "num_experts": 60,
            "num_experts_per_tok": 4,
            "moe_intermediate_size": 1408,
            "shared_expert_intermediate_size": 5632,
        },
    ),
    "glm-4.5-air": (
        106.85e9,
        "glm4_moe",
        (46, 4096, 10944, 96, 151552),
        {
            "num_key_value_heads": 8,
            "head_dim": 128,
            "attention_bias": True,
            "n_routed_experts": 128,
            "n_shared_experts": 1,
            "num_experts_per_tok": 8,
            "moe_intermediate_size": 1408,
            "first_k_dense_replace": 1,
        },
    ),
    "llama-4-scout": (
        107.8e9,
        "llama4_text",
        (48, 5120, 8192, 40, 202048),
        {
            "num_key_value_heads": 8,
            "head_dim": 128,
            "num_local_experts": 16,
            "num_experts_per_tok": 1,
            "intermediate_size_mlp": 16384,
            "interleave_moe_layer_step": 1,
        },
    ),
    "llama-4-maverick": (
        400.7e9,
        "llama4_text",
        (48, 5120, 8192, 40, 202048),
        {
            "num_key_value_heads": 8,
            "head_dim": 128,
            "num_local_experts": 128,
            "num_experts_per_tok": 1,
            "intermediate_size_mlp": 16384,
            "interleave_moe_layer_step": 2,
        },
    ),
}
"""Parameters of the language models as their makers publish them (Scout's 109 billion have a vision encoder of about
one), `model_type`, layers, widths, heads and words, and what else the config has."""


def other(name: str) -> tuple[float, dict]:
    published, kind, sizes, more = OTHERS[name]
    names = ("num_hidden_layers", "hidden_size", "intermediate_size", "num_attention_heads", "vocab_size")
    fields = dict(zip(names, sizes, strict=True)) | {"model_type": kind, "torch_dtype": "bfloat16"}
    return published, fields | more


@pytest.mark.parametrize("name", OTHERS)
def test_architectures_without_a_preset_are_counted_too(name: str) -> None:
    published, fields = other(name)
    assert model_of(fields, name).parameters == pytest.approx(published, rel=0.003)


def test_the_language_model_of_one_that_sees_is_read() -> None:
    published, fields = other("llama-4-scout")
    kind = fields.pop("torch_dtype")
    whole = {"model_type": "llama4", "torch_dtype": kind, "text_config": fields, "vision_config": {"hidden_size": 1408}}
    assert model_of(whole, "scout").parameters == pytest.approx(published, rel=0.003)
    del fields["num_local_experts"]
    with pytest.raises(RequestError, match=r"config\.json, text_config: there is no `num_local_experts`"):
        model_of(whole, "scout")


@pytest.mark.parametrize("table", ["llm_config", "language_config", "thinker_config"])
def test_the_language_model_may_stand_under_another_name(table: str) -> None:
    whole = {"model_type": "internvl_chat", table: config("llama-7b"), "vision_config": {"hidden_size": 1024}}
    assert model_of(whole, "x").parameters == model_of(config("llama-7b"), "x").parameters


@pytest.mark.parametrize("value", [float("nan"), 1e308, -1, "4096", True])
def test_a_size_that_is_none_is_refused(value: object) -> None:
    with pytest.raises(RequestError, match="`hidden_size` is"):
        model_of(config("llama-7b") | {"hidden_size": value}, "m")


def test_a_config_json_is_read_from_its_folder(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config("qwen3-8b") | {"architectures": ["X"], "bos_token_id": 1}))
    read = catalog.load_model(str(folder))
    assert read.name == "mine"
    assert read.parameters == catalog.load_model("qwen3-8b").parameters


def test_quantised_weights_are_read_from_the_config() -> None:
    quantised = model_of(config("llama-7b") | {"quantization_config": {"quant_method": "gptq", "bits": 4}}, "q")
    matrices = sum(tensor.parameters for part in quantised.parts for tensor in part.named)
    norms = 32 * 2 * 4096
    words = sum(part.parameters for part in quantised.parts if part.name in {"head", "embedding"})
    assert matrices + norms + words == quantised.parameters
    assert quantised.weight_bytes == matrices / 2 + 2 * (words + norms)


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"model_type": "mamba", "state_size": 16}, "`model_type` 'mamba' is not known"),
        ({"model_type": "starcoder2", "hidden_act": "gelu_pytorch_tanh"}, "which known architecture it is like"),
        ({"model_type": "mllama_text_model", "cross_attention_layers": [3]}, "which known architecture it is like"),
        ({"hidden_size": None}, "there is no `hidden_size`"),
        ({"hidden_size": 0}, "`hidden_size` is 0"),
        ({"hidden_size": "wide"}, "`hidden_size` is 'wide'"),
        ({"num_local_experts": 8}, "`num_local_experts` is no field of `model_type` 'llama'"),
        ({"kv_lora_rank": 512}, "the size would be counted wrong"),
        ({"torch_dtype": "int3"}, "`torch_dtype` 'int3' is not known"),
    ],
)
def test_fields_that_cannot_be_counted_are_named(changed: dict, told: str) -> None:
    with pytest.raises(RequestError) as caught:
        model_of(config("llama-7b") | changed, "x", "there/config.json")
    assert told in str(caught.value)
    assert "there/config.json" in str(caught.value)
    assert "hint:" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "told"),
    [("opt-66", "did you mean opt-66b"), ("no/such.json", "No such file"), ("no/such.gguf", "No such file")],
)
def test_names_that_are_not_known_are_answered(name: str, told: str) -> None:
    with pytest.raises(RequestError, match=told):
        catalog.load_model(name)


def test_a_gpu_file_without_sources_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("memory_bytes = 1e9\n")
    with pytest.raises(RequestError, match="`memory_bytes` is missing or has no kind and source"):
        catalog.load_gpu(str(file))
    file.write_text("colour = 1\n")
    with pytest.raises(RequestError, match="`colour` is no figure"):
        catalog.load_gpu(str(file))


def write_gguf(path: Path, *, experts: int) -> int:
    """A GGUF file of a tiny model; returns its parameters."""
    keys = {"block_count": 2, "embedding_length": 64, "feed_forward_length": 128, "context_length": 512}
    keys |= {"attention.head_count": 4, "attention.head_count_kv": 2}
    shapes = {"token_embd.weight": (100, 64), "output.weight": (100, 64), "output_norm.weight": (64,)}
    for layer in range(2):
        shapes |= {f"blk.{layer}.attn_q.weight": (64, 64), f"blk.{layer}.attn_output.weight": (64, 64)}
        shapes |= {f"blk.{layer}.attn_k.weight": (32, 64), f"blk.{layer}.attn_v.weight": (32, 64)}
        if experts:
            shapes |= {f"blk.{layer}.ffn_{k}_exps.weight": (experts, 128, 64) for k in ("gate", "up", "down")}
        else:
            shapes |= {f"blk.{layer}.ffn_{k}.weight": (128, 64) for k in ("gate", "up", "down")}
    if experts:
        keys |= {"expert_count": experts, "expert_used_count": 2}
    gguf_files.write(path, "llama", keys, shapes)
    return sum(prod(shape) for shape in shapes.values())


@pytest.mark.parametrize("experts", [0, 8])
def test_a_gguf_header_gives_the_sizes_as_stored(tmp_path: Path, experts: int) -> None:
    parameters = write_gguf(tmp_path / "tiny.gguf", experts=experts)
    model = catalog.load_model(str(tmp_path / "tiny.gguf"))
    assert model.parameters == parameters
    assert model.weight_bytes == 2 * parameters
    assert model.kv_bytes_per_token == 2 * 2 * 2 * 16 * 2
    assert model.experts == experts
    assert {part.name for part in model.parts} >= {"attention", "embedding", "head", "experts" if experts else "mlp"}


def test_a_file_that_is_no_gguf_is_refused(tmp_path: Path) -> None:
    (tmp_path / "bad.gguf").write_bytes(b"not a model" * 100)
    with pytest.raises(RequestError, match="no GGUF file"):
        catalog.load_model(str(tmp_path / "bad.gguf"))
