"""GGUF headers of models that do not keep the same in every layer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tierloom.errors import RequestError
from tierloom.offload import catalog
from tierloom.offload.model import Model

LAYERS = 8


def written(path: Path, family: str, more: dict[str, Any], tensors: dict[str, tuple[int, ...]] | None = None) -> Model:
    """A model of a header with eight layers, four heads of 64, and what else is asked for."""
    import gguf
    import numpy as np

    file = path / "tiny.gguf"
    writer = gguf.GGUFWriter(file, family)
    keys = {
        "block_count": LAYERS,
        "embedding_length": 256,
        "feed_forward_length": 512,
        "attention.head_count": 4,
    } | more
    for key, value in keys.items():
        add = writer.add_array if isinstance(value, list) else writer.add_uint32
        add(f"{family}.{key}", value)
    shapes = {"token_embd.weight": (10, 256), "blk.0.attn_q.weight": (256, 256), "blk.0.ffn_up.weight": (512, 256)}
    for name, shape in (shapes | (tensors or {})).items():
        writer.add_tensor(name, np.zeros(shape, dtype=np.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return catalog.load_model(str(file))


def test_latent_attention_caches_one_vector(tmp_path: Path) -> None:
    keys = {"attention.kv_lora_rank": 512, "rope.dimension_count": 64, "attention.head_count_kv": 1}
    assert written(tmp_path, "deepseek2", keys).kv_bytes_per_token == LAYERS * 576 * 2


@pytest.mark.parametrize(
    ("family", "pattern", "full"),
    [
        ("gpt-oss", {}, 4),
        ("gemma3", {}, 1),
        ("llama", {}, 8),
        ("other", {"attention.sliding_window_pattern": 4}, 2),
        ("gemma4", {"attention.sliding_window_pattern": [True] * 6 + [False] * 2}, 2),
    ],
)
def test_windows_are_read_or_known_by_architecture(tmp_path: Path, family: str, pattern: dict, full: int) -> None:
    window = {"attention.sliding_window": 128, "attention.head_count_kv": 2}
    model = written(tmp_path, family, window | pattern)
    a_layer = 2 * 2 * 64 * 2
    assert model.kv_bytes_per_token == full * a_layer
    assert model.cache_bytes(4096) == full * a_layer * 4096 + (LAYERS - full) * a_layer * 128


@pytest.mark.parametrize(
    "layers",
    [{"attention.head_count_kv": [0, 0, 0, 2] * 2}, {"attention.head_count_kv": 2, "full_attention_interval": 4}],
)
def test_layers_without_heads_keep_a_state(tmp_path: Path, layers: dict) -> None:
    state = {"ssm.inner_size": 512, "ssm.state_size": 128, "ssm.conv_kernel": 4, "ssm.group_count": 8}
    model = written(tmp_path, "nemotron_h_moe", state | layers)
    assert model.kv_bytes_per_token == 2 * 2 * 2 * 64 * 2
    constant = model.cache_bytes(4096) - 4096 * model.kv_bytes_per_token
    assert constant == 6 * (512 * 128 + 3 * (512 + 2 * 8 * 128)) * 4


def test_a_state_stands_beside_attention_where_every_layer_has_heads(tmp_path: Path) -> None:
    state = {"ssm.inner_size": 512, "ssm.state_size": 128, "ssm.conv_kernel": 4, "ssm.group_count": 1}
    model = written(tmp_path, "falcon-h1", state | {"attention.head_count_kv": 2})
    assert model.kv_bytes_per_token == LAYERS * 2 * 2 * 64 * 2
    assert model.cache_bytes(1) - model.kv_bytes_per_token == LAYERS * (512 * 128 + 3 * (512 + 2 * 128)) * 4


def test_layers_that_predict_ahead_are_told_apart(tmp_path: Path) -> None:
    ahead = {"blk.7.attn_q.weight": (256, 256), "blk.7.nextn.eh_proj.weight": (256, 512)}
    model = written(tmp_path, "glm4moe", {"nextn_predict_layers": 1}, ahead)
    assert model.layers == LAYERS - 1
    assert model.draft is not None
    assert model.draft.parameters == 256 * 256 + 256 * 512
    assert "draft" not in {part.name for part in model.parts}


def test_a_list_that_is_too_short_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=r"`llama\.attention\.head_count_kv` has 2 numbers for 8 layers"):
        written(tmp_path, "llama", {"attention.head_count_kv": [2, 2]})
