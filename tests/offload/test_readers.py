"""One model by its config.json and by the header of its GGUF file: one `Model`, so the same bytes a token."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from gguf_files import write

from tierloom.offload import catalog
from tierloom.offload.architectures import model_of
from tierloom.offload.exporters.llama_cpp import FAMILIES
from tierloom.offload.model import STATE, Model

LONG = 1 << 20

LATENT = {"attention.head_count_kv": 1, "attention.key_length": 576, "attention.value_length": 512}
INDEXER = {"attention.indexer.head_count": 32, "attention.indexer.key_length": 128, "attention.indexer.top_k": 2048}

NEMOTRON = "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME"

KEYS: dict[str, dict[str, Any]] = {
    "llama-3.1-8b": {},
    "qwen3-32b": {},
    "mixtral-8x22b": {},
    "deepseek-v3": LATENT | {"attention.kv_lora_rank": 512, "rope.dimension_count": 64},
    "kimi-k2": LATENT | {"attention.kv_lora_rank": 512, "rope.dimension_count": 64},
    "glm-5": LATENT | INDEXER | {"attention.kv_lora_rank": 512, "rope.dimension_count": 64},
    "gpt-oss-20b": {"attention.sliding_window": 128},
    "llama-4-scout": {},
    "gemma-4-26b-a4b": {
        "attention.head_count_kv": [8, 8, 8, 8, 8, 2] * 5,
        "attention.key_length": 512,
        "attention.value_length": 512,
        "attention.key_length_swa": 256,
        "attention.value_length_swa": 256,
        "attention.sliding_window": 1024,
        "attention.sliding_window_pattern": [True] * 5 + [False],
    },
    "qwen3-next-80b-a3b": {
        "full_attention_interval": 4,
        "ssm.inner_size": 4096,
        "ssm.state_size": 128,
        "ssm.group_count": 16,
        "ssm.time_step_rank": 32,
        "ssm.conv_kernel": 4,
    },
    "nemotron-3-nano-30b-a3b": {
        "attention.head_count_kv": [2 if block == "*" else 0 for block in NEMOTRON],
        "ssm.inner_size": 4096,
        "ssm.state_size": 128,
        "ssm.group_count": 8,
        "ssm.conv_kernel": 4,
    },
    "granite-4.0-h-small": {
        "attention.head_count_kv": [8 if layer in (5, 15, 25, 35) else 0 for layer in range(40)],
        "ssm.inner_size": 8192,
        "ssm.state_size": 128,
        "ssm.group_count": 1,
        "ssm.conv_kernel": 4,
    },
}
"""What the GGUF files say beside what every file says, as llama.cpp's converter writes it."""

NAMES = {
    "head_dim": ("attention.key_length", "attention.value_length"),
    "num_key_value_heads": ("attention.head_count_kv",),
}


def by_header(name: str, folder: Path) -> Model:
    """The model by the keys that the converter makes of its config."""
    model, config = catalog.load_model(name), catalog.model_entry(name).data["config"]
    config = config.get("text_config", config)
    keys: dict[str, Any] = {
        "block_count": model.layers,
        "embedding_length": model.hidden,
        "feed_forward_length": model.ffn,
        "attention.head_count": config["num_attention_heads"],
    }
    keys |= {key: config[field] for field, names in NAMES.items() if config.get(field) for key in names}
    keys |= KEYS[name]
    pattern = keys.get("attention.sliding_window_pattern")
    if isinstance(pattern, list):
        keys["attention.sliding_window_pattern"] = pattern * (model.layers // len(pattern))
    states = [layer for layer, block in enumerate(NEMOTRON) if block == "M"] if name.startswith("nemotron") else []
    shapes = {"token_embd.weight": (10, 64), "output.weight": (10, 64)}
    shapes |= {f"blk.{layer}.ssm_in.weight": (8, 64) for layer in states}
    write(folder / "model.gguf", FAMILIES[model.family], keys, shapes)
    return catalog.load_model(str(folder / "model.gguf"))


def caches(model: Model) -> list[tuple[float, float, int, int]]:
    """Caches of keys and values: numbers, operations, windows, positions that are looked at."""
    kept = (cache for cache in model.caches if cache.window != STATE)
    return sorted((cache.position_bytes, cache.score_flop, cache.window, cache.looks) for cache in kept)


@pytest.mark.parametrize("name", KEYS)
def test_both_readers_make_the_same_of_a_model(name: str, tmp_path: Path) -> None:
    config, header = catalog.load_model(name), by_header(name, tmp_path)
    assert header.kv_bytes_per_token == config.kv_bytes_per_token
    assert caches(header) == caches(config)
    assert (header.layers, header.hidden) == (config.layers, config.hidden)


@pytest.mark.parametrize("name", [name for name, keys in KEYS.items() if "ssm.inner_size" in keys])
def test_both_readers_find_as_many_numbers_in_the_states(name: str, tmp_path: Path) -> None:
    config, header = (
        sorted(cache.elements for cache in model.caches if cache.window == STATE)
        for model in (catalog.load_model(name), by_header(name, tmp_path))
    )
    assert config == header


def test_deepseek_keeps_70272_bytes_a_token_by_both(tmp_path: Path) -> None:
    assert catalog.load_model("deepseek-v3").kv_bytes_per_token == 70272
    assert by_header("deepseek-v3", tmp_path).kv_bytes_per_token == 70272


GEMMA_3_4B = {"model_type": "gemma3_text", "num_hidden_layers": 34, "hidden_size": 2560, "intermediate_size": 10240}


def test_what_an_official_file_leaves_out_is_its_classes_and_said() -> None:
    """Gemma 3's config.json has no heads and no words: the class has."""
    file = {"model_type": "gemma3", "torch_dtype": "bfloat16", "text_config": GEMMA_3_4B | {"sliding_window": 1024}}
    model = model_of(file, "gemma-3-4b-it")
    assert model.parameters == pytest.approx(3.88e9, rel=0.001)
    assert model.kv_bytes_per_token == 5 * 2 * 4 * 256 * 2
    (told,) = model.guesses
    assert "taken from the class" in told
    assert all(field in told for field in ("`num_attention_heads` 8", "`num_key_value_heads` 4", "`vocab_size` 262208"))


def test_what_the_file_says_is_no_guess_and_null_is_said() -> None:
    said = {"num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "vocab_size": 262208}
    assert model_of(GEMMA_3_4B | said | {"sliding_window": 1024}, "g").guesses == ()
    assert model_of(GEMMA_3_4B | said | {"sliding_window": None}, "g").kv_bytes_per_token == 34 * 2 * 4 * 256 * 2
