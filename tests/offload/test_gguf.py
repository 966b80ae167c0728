"""GGUF headers of models that do not keep the same in every layer, and of models in several files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from gguf_files import Shapes, write

from tierloom.errors import RequestError
from tierloom.offload import catalog
from tierloom.offload.model import Model

LAYERS = 8

PLAIN: Shapes = {"token_embd.weight": (10, 256), "blk.0.attn_q.weight": (256, 256), "blk.0.ffn_up.weight": (512, 256)}


def written(path: Path, family: str, more: dict[str, Any], tensors: Shapes | None = None) -> Model:
    """A model of a header with eight layers, four heads of 64, and what else is asked for."""
    keys = {
        "block_count": LAYERS,
        "embedding_length": 256,
        "feed_forward_length": 512,
        "attention.head_count": 4,
    } | more
    write(path / "tiny.gguf", family, keys, {**PLAIN, **(tensors or {})})
    return catalog.load_model(str(path / "tiny.gguf"))


def test_latent_attention_caches_one_vector(tmp_path: Path) -> None:
    keys = {"attention.kv_lora_rank": 512, "rope.dimension_count": 64, "attention.head_count_kv": 1}
    assert written(tmp_path, "deepseek2", keys).kv_bytes_per_token == LAYERS * 576 * 2


def test_files_from_before_the_latent_vector_cache_all_heads_and_say_so(tmp_path: Path) -> None:
    keys = {"attention.kv_lora_rank": 512, "rope.dimension_count": 64, "attention.head_count_kv": 4}
    widths = {"attention.key_length": 192, "attention.value_length": 128}
    old = written(tmp_path, "deepseek2", keys | widths)
    assert old.kv_bytes_per_token == LAYERS * 4 * (192 + 128) * 2
    assert "caches keys and values of all heads" in old.guesses[0]


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


def test_layers_of_a_state_without_an_output_of_attention_keep_no_keys(tmp_path: Path) -> None:
    """Early files of Qwen3-Next give all layers the same heads and no interval."""
    state = {"ssm.inner_size": 512, "ssm.state_size": 128, "ssm.conv_kernel": 4, "ssm.group_count": 8}
    tensors = {f"blk.{n}.ssm_out.weight": (256, 512) for n in range(LAYERS) if n not in (3, 7)}
    tensors |= {f"blk.{n}.attn_output.weight": (256, 256) for n in (3, 7)}
    model = written(tmp_path, "qwen3next", state | {"attention.head_count_kv": 2}, tensors)
    assert model.kv_bytes_per_token == 2 * 2 * 2 * 64 * 2


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


SPLIT = {"block_count": 2, "embedding_length": 64, "feed_forward_length": 128, "attention.head_count": 4}
HALVES: tuple[Shapes, Shapes] = (
    {"token_embd.weight": (100, 64), "blk.0.attn_q.weight": (64, 64)},
    {"blk.1.attn_q.weight": (64, 64), "output_norm.weight": (64,), "output.weight": (100, 64)},
)


def shards(folder: Path, *parts: Shapes, name: str = "big") -> list[Path]:
    """A split model as llama-gguf-split writes it: the keys in the first file only."""
    count, total = len(parts), sum(map(len, parts))
    files = [folder / f"{name}-{number:05}-of-{count:05}.gguf" for number in range(1, count + 1)]
    for number, (file, shapes) in enumerate(zip(files, parts, strict=True)):
        split = {"split.no": number, "split.count": count, "split.tensors.count": total}
        write(file, "llama", split | ({} if number else SPLIT), shapes)
    return files


@pytest.mark.parametrize("parts", [HALVES, ({}, *HALVES)], ids=["as written", "keys alone first"])
def test_a_split_model_is_all_its_shards(tmp_path: Path, parts: tuple[Shapes, ...]) -> None:
    first, *_ = shards(tmp_path, *parts)
    write(tmp_path / "whole.gguf", "llama", SPLIT, {**HALVES[0], **HALVES[1]})
    split, whole = catalog.load_model(str(first)), catalog.load_model(str(tmp_path / "whole.gguf"))
    assert split.parts == whole.parts
    assert split.caches == whole.caches


def test_a_shard_that_is_missing_or_not_the_first_is_named(tmp_path: Path) -> None:
    first, second = shards(tmp_path, *HALVES)
    with pytest.raises(RequestError, match=r"shard 2 of 2; .*\nhint: give big-00001-of-00002\.gguf"):
        catalog.load_model(str(second))
    renamed = second.rename(tmp_path / "other.gguf")
    with pytest.raises(RequestError, match=r"there is no big-00002-of-00002\.gguf"):
        catalog.load_model(str(first))
    first.rename(tmp_path / "alone.gguf")
    renamed.rename(second)
    with pytest.raises(RequestError, match=r"hint: call it NAME-00001-of-00002\.gguf"):
        catalog.load_model(str(tmp_path / "alone.gguf"))


def test_shards_of_two_models_are_refused(tmp_path: Path) -> None:
    first, second = shards(tmp_path, *HALVES)
    *_, third = shards(tmp_path, *HALVES, {}, name="other")
    third.replace(second)
    with pytest.raises(RequestError, match="shard 3 of 3 by its keys, 2 of 2 by its name"):
        catalog.load_model(str(first))
    _, fuller = shards(tmp_path, HALVES[0], {**HALVES[1], "blk.1.attn_k.weight": (64, 64)}, name="other")
    fuller.replace(second)
    with pytest.raises(RequestError, match=r"have 6 tensors, and `split\.tensors\.count` is 5"):
        catalog.load_model(str(first))


@pytest.mark.parametrize(
    ("family", "keys", "shapes", "told"),
    [
        ("llama", SPLIT, {}, "no tensors, only keys and words"),
        ("clip", {"vision.block_count": 27}, {"v.patch_embd.weight": (8, 8)}, "projector of images or sound"),
        ("llama", {"general.type": "mmproj"}, {"mm.0.weight": (8, 8)}, "projector of images or sound"),
        ("llama", {"general.type": "adapter"}, {"blk.0.attn_q.weight.lora_a": (8, 8)}, "an adapter"),
        ("llama", {"general.type": "imatrix"}, {"blk.0.attn_q.weight.counts": (8, 8)}, "an importance matrix"),
    ],
)
def test_a_file_that_is_no_model_says_what_it_is(
    tmp_path: Path, family: str, keys: dict, shapes: Shapes, told: str
) -> None:
    write(tmp_path / "x.gguf", family, keys, shapes)
    with pytest.raises(RequestError, match=told) as caught:
        catalog.load_model(str(tmp_path / "x.gguf"))
    assert "hint: give the file of the language model" in str(caught.value)


def test_a_gguf_file_is_known_by_its_content(tmp_path: Path) -> None:
    write(tmp_path / "sha256-0123", "llama", SPLIT, {**HALVES[0], **HALVES[1]})
    assert catalog.load_model(str(tmp_path / "sha256-0123")).layers == 2


def test_a_model_without_an_output_matrix_multiplies_with_its_words(tmp_path: Path) -> None:
    tables = {"per_layer_token_embd.weight": (10, 2048), "output_norm.weight": (256,), "rope_freqs.weight": (32,)}
    tied = {part.name: part for part in written(tmp_path, "gemma3n", {}, tables).parts}
    assert tied["head"].active == "all"
    assert tied["head"].parameters == 10 * 256 + 256 + 32
    assert tied["embedding"].active == "rows"
    assert tied["embedding"].parameters == 10 * 2048
    apart = {part.name: part for part in written(tmp_path, "gemma3n", {}, tables | {"output.weight": (10, 256)}).parts}
    assert apart["head"].parameters == tied["head"].parameters
    assert apart["embedding"].parameters == 10 * 2048 + 10 * 256


def test_only_layers_with_tensors_of_a_state_keep_one(tmp_path: Path) -> None:
    """Of Nemotron's layers some are feed-forward alone: they keep nothing at all."""
    state = {"ssm.inner_size": 512, "ssm.state_size": 128, "ssm.conv_kernel": 4, "ssm.group_count": 8}
    heads = {"attention.head_count_kv": [0, 0, 2, 0] * 2, "attention.head_count": [0, 0, 4, 0] * 2}
    tensors = {f"blk.{n}.ssm_in.weight": (512, 256) for n in (0, 4)}
    model = written(tmp_path, "nemotron_h_moe", state | heads, tensors)
    assert model.kv_bytes_per_token == 2 * 2 * 2 * 64 * 2
    assert model.cache_bytes(1) - model.kv_bytes_per_token == 2 * (512 * 128 + 3 * (512 + 2 * 8 * 128)) * 4


def test_layers_that_share_a_cache_count_once(tmp_path: Path) -> None:
    keys = {"attention.head_count_kv": 2, "attention.sliding_window": 128, "attention.shared_kv_layers": 3}
    pattern = {"attention.sliding_window_pattern": [True, True, True, False] * 2}
    model = written(tmp_path, "gemma3n", keys | pattern)
    a_layer = 2 * 2 * 64 * 2
    assert model.kv_bytes_per_token == a_layer, "of five layers with a cache of their own, one looks at everything"
    assert model.cache_bytes(4096) == a_layer * (4096 + 4 * 128)


def test_heads_may_be_wider_where_a_layer_looks_at_everything(tmp_path: Path) -> None:
    keys = {"attention.head_count_kv": [4, 1] * 4, "attention.sliding_window": 128}
    widths = {
        f"attention.{kind}_length{near}": 64 if near else 128 for kind in ("key", "value") for near in ("", "_swa")
    }
    model = written(tmp_path, "gemma4", keys | widths | {"attention.sliding_window_pattern": [True, False] * 4})
    assert model.kv_bytes_per_token == 4 * 1 * 2 * 128 * 2
    assert model.cache_bytes(128) - 128 * model.kv_bytes_per_token == 4 * 4 * 2 * 64 * 2 * 128


@pytest.mark.parametrize(
    ("family", "keys", "numbers"),
    [
        ("kimi-linear", {"kda.head_dim": 64, "ssm.conv_kernel": 4}, 4 * 64 * 64 + 3 * 4 * 64 * 3),
        ("rwkv7", {"wkv.head_size": 64}, 256 * 64 + 2 * 256),
        ("lfm2", {"shortconv.l_cache": 3}, 256 * 2),
    ],
)
def test_other_states_are_counted_too(tmp_path: Path, family: str, keys: dict, numbers: int) -> None:
    model = written(tmp_path, family, keys | {"attention.head_count_kv": [0, 0, 0, 2] * 2})
    assert model.cache_bytes(1) - model.kv_bytes_per_token == 6 * numbers * 4


def test_a_window_that_no_layer_is_said_to_have_is_a_guess(tmp_path: Path) -> None:
    window = {"attention.sliding_window": 128, "attention.head_count_kv": 2}
    assert "window of 128 tokens is not said" in written(tmp_path, "llama", window).guesses[0]
    assert written(tmp_path, "gemma3", window).guesses == ()


def test_weights_that_are_missing_are_said_and_their_sizes_known(tmp_path: Path) -> None:
    whole = written(tmp_path, "llama", {"attention.head_count_kv": 2})
    file = tmp_path / "tiny.gguf"
    content = file.read_bytes()
    weights = sum(2 * rows * columns for rows, columns in PLAIN.values())
    for missing in (1, weights // 2, weights):
        file.write_bytes(content[: len(content) - missing])
        cut = catalog.load_model(str(file))
        assert (cut.parts, cut.caches, cut.guesses != whole.guesses) == (whole.parts, whole.caches, True)
        assert "of weights are missing from the file" in cut.guesses[-1]


def test_a_header_that_is_cut_is_refused_wherever_it_is_cut(tmp_path: Path) -> None:
    written(tmp_path, "llama", {"attention.head_count_kv": 2})
    file = tmp_path / "tiny.gguf"
    content = file.read_bytes()
    header = content.index(b"blk.0.ffn_up.weight") + len(b"blk.0.ffn_up.weight") + 4 + 2 * 8 + 4 + 8
    for end in (*range(1, header, 17), header - 1):
        file.write_bytes(content[:end])
        with pytest.raises(RequestError, match=f"its header is cut off: it announces more than the {end:,} bytes"):
            catalog.load_model(str(file))


def test_a_type_of_a_fork_is_named(tmp_path: Path) -> None:
    written(tmp_path, "llama", {"attention.head_count_kv": 2})
    file = tmp_path / "tiny.gguf"
    content = bytearray(file.read_bytes())
    kind = content.index(b"blk.0.attn_q.weight") + len(b"blk.0.attn_q.weight") + 4 + 2 * 8
    content[kind] = 144
    file.write_bytes(content)
    with pytest.raises(RequestError, match=r"`blk.0.attn_q.weight` is of type 144, which the package"):
        catalog.load_model(str(file))
