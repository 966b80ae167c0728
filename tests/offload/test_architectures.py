"""What models of today keep of a sequence, and what their checkpoints take: by hand, and as published."""

from __future__ import annotations

import pytest

import tierloom
from tierloom.errors import RequestError
from tierloom.offload import catalog
from tierloom.offload.architectures import model_of
from tierloom.offload.host import host_of
from tierloom.offload.problem import Problem
from tierloom.offload.runtime import RUNTIMES

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30

GROWS = {
    "deepseek-r1": 61 * (512 + 64) * 2,
    "deepseek-v3.2": 61 * ((512 + 64) * 2 + 128 + 4),
    "kimi-k2.5": 61 * (512 + 64) * 2,
    "glm-5": 78 * ((512 + 64) * 2 + 128 + 4),
    "glm-4.5-air": 46 * 2 * 8 * 128 * 2,
    "minimax-m2.5": 248 * KIB,
    "llama-4-scout": 12 * 2 * 8 * 128 * 2,
    "gpt-oss-120b": 18 * 2 * 8 * 64 * 2,
    "gpt-oss-20b": 12 * 2 * 8 * 64 * 2,
    "gemma-4-26b-a4b": 5 * 2 * 2 * 512 * 2,
    "gemma-4-31b-nvfp4": 10 * 2 * 4 * 512 * 2,
    "mimo-v2-flash": 9 * 4 * (192 + 128) * 2,
    "qwen3-next-80b-a3b": 12 * 2 * 2 * 256 * 2,
    "qwen3.5-27b": 16 * 2 * 4 * 256 * 2,
    "nemotron-3-nano-30b-a3b": 6 * 2 * 2 * 128 * 2,
    "nemotron-h-56b": 10 * 2 * 8 * 128 * 2,
    "granite-4.0-h-small": 16384,
}
"""Bytes that each token adds to a long cache: layers that look at everything x what each keeps x bytes. MiniMax's
248 KiB are published; the indexer of sparse attention keeps 128 bytes and a scale of four."""

ONCE = {
    "gpt-oss-120b": 18 * 128 * 2 * 8 * 64 * 2,
    "gemma-4-26b-a4b": 25 * 1024 * 2 * 8 * 256 * 2,
    "llama-4-scout": 36 * 8192 * 2 * 8 * 128 * 2,
    "mimo-v2-flash": 39 * 128 * 8 * (192 + 128) * 2,
    "qwen3.5-27b": 48 * (48 * 128 * 128 * 4 + 3 * (2 * 16 * 128 + 48 * 128) * 2),
    "nemotron-3-nano-30b-a3b": 23 * (64 * 64 * 128 * 4 + 3 * (64 * 64 + 2 * 8 * 128) * 2),
    "granite-4.0-h-small": 36 * (128 * 64 * 128 * 2 + 3 * (128 * 64 + 2 * 128) * 2),
}
"""Bytes that windows and states take, however long the context: layers x window x elements, or numbers of a state and
of its convolution's last three inputs."""

LONG = 1 << 20


@pytest.mark.parametrize(("name", "bytes_"), GROWS.items())
def test_each_token_adds_what_layers_that_see_everything_keep(name: str, bytes_: int) -> None:
    model = catalog.load_model(name)
    assert model.kv_bytes_per_token == bytes_
    assert model.cache_bytes(LONG + 1) - model.cache_bytes(LONG) == pytest.approx(bytes_)


@pytest.mark.parametrize(("name", "bytes_"), ONCE.items())
def test_windows_and_states_do_not_grow(name: str, bytes_: int) -> None:
    model = catalog.load_model(name)
    assert model.cache_bytes(LONG) - LONG * GROWS[name] == pytest.approx(bytes_)


@pytest.mark.parametrize("name", ["nemotron-3-nano-30b-a3b", "qwen3.5-397b-a17b", "granite-4.0-h-small"])
def test_a_state_is_as_large_after_one_token_as_after_many(name: str) -> None:
    model = catalog.load_model(name)
    states = model.cache_bytes(1) - model.kv_bytes_per_token
    assert states > 1000 * model.kv_bytes_per_token
    assert model.cache_bytes(2) - model.cache_bytes(1) == model.kv_bytes_per_token
    eight = model.with_kv_bits(8)
    assert eight.kv_bytes_per_token == model.kv_bytes_per_token / 2
    assert eight.cache_bytes(1) - eight.kv_bytes_per_token == states


def test_sparse_attention_keeps_all_and_reads_what_its_indexer_chooses() -> None:
    model = catalog.load_model("deepseek-v3.2")
    keys, latent = 61 * (128 + 4), 61 * (512 + 64) * 2
    assert model.read_bytes(2048) == 2048 * (keys + latent) == model.cache_bytes(2048)
    assert model.read_bytes(65536) == 65536 * keys + 2048 * latent
    assert model.with_kv_bits(8).kv_bytes_per_token == keys + latent / 2


def test_a_prompt_looks_at_half_a_square_or_at_a_band() -> None:
    whole = catalog.load_model("llama-3.1-8b")
    (cache,) = whole.caches
    assert whole.prefill_attention_flop(1000) == cache.score_flop * 1000**2 / 2
    near, far = catalog.load_model("gpt-oss-20b").caches[::-1]
    assert near.all_looked(100) == far.all_looked(100) == 100**2 / 2
    assert near.all_looked(4096) == pytest.approx(sum(min(each, 128) for each in range(4096)), rel=1e-3)


CHECKPOINTS = {"gpt-oss-120b": 60.8 * GIB, "gpt-oss-20b": 12.8 * GIB, "kimi-k2.5": 595e9}
"""Published sizes: the gpt-oss model card (arXiv 2508.10925), and the repository of Kimi K2 with integer weights."""


@pytest.mark.parametrize(("name", "bytes_"), CHECKPOINTS.items())
def test_checkpoints_take_what_their_makers_say(name: str, bytes_: float) -> None:
    assert catalog.load_model(name).checkpoint_bytes == pytest.approx(bytes_, rel=0.005)


def test_eight_bits_halve_what_is_quantised_and_nothing_else() -> None:
    half, whole = catalog.load_model("glm-5-fp8"), catalog.load_model("glm-5")
    assert half.parameters == whole.parameters
    for part, full in zip(half.parts, whole.parts, strict=True):
        matrices = sum(tensor.parameters for tensor in full.named)
        assert part.bytes == pytest.approx(2 * part.parameters - matrices * (1 - 4 / 128**2), rel=1e-9)


def test_layers_that_predict_ahead_are_in_the_checkpoint_and_in_no_run() -> None:
    model = catalog.load_model("deepseek-v3")
    assert model.draft is not None
    assert model.draft.parameters == pytest.approx(14e9, rel=0.05), "14 billion, as the model's README has it"
    assert model.parameters == pytest.approx(671e9, rel=0.001)
    assert model.checkpoint_bytes == model.weight_bytes + model.draft.bytes
    assert catalog.load_model("llama-3.1-8b").draft is None


ACTIVE = {
    "deepseek-v3": 37e9,
    "kimi-k2": 32e9,
    "gpt-oss-120b": 5.1e9,
    "gemma-4-26b-a4b": 3.8e9,
    "nemotron-3-nano-30b-a3b": 3.2e9,
    "minimax-m2.5": 9.8e9,
    "glm-5": 40e9,
}
"""Parameters that a token meets, as published; MiniMax's leave the output matrix of 0.6 billion out."""


@pytest.mark.parametrize(("name", "published"), ACTIVE.items())
def test_a_token_meets_as_many_parameters_as_published(name: str, published: float) -> None:
    assert catalog.load_model(name).flop_per_token / 2 == pytest.approx(published, rel=0.07)


def test_sizes_that_no_model_here_has_are_refused() -> None:
    fields = dict(catalog.model_entry("gemma-4-26b-a4b").data["config"]) | {"num_kv_shared_layers": 18}
    with pytest.raises(RequestError, match="`num_kv_shared_layers` is 18, which cannot be counted"):
        model_of(fields, "m")


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("llama-3.1-8b", "llama"),
        ("mixtral-8x7b", "mixtral"),
        ("qwen3-30b-a3b", "qwen3_moe"),
        ("glm-4.5-air", "glm4_moe"),
        ("kimi-k2", "deepseek_v3"),
        ("deepseek-v3.2", "deepseek_v32"),
    ],
)
def test_a_family_under_a_new_name_is_counted_by_its_fields(name: str, family: str) -> None:
    known = catalog.load_model(name)
    fields = dict(catalog.model_entry(name).data["config"])
    found = model_of(fields | {"model_type": "brand_new", "sliding_window": 4096}, name)
    assert found.guesses[0] == f"`model_type` 'brand_new' is not known: counted as {family!r}, whose fields it has"
    assert found.parameters == known.parameters
    assert found.checkpoint_bytes == known.checkpoint_bytes
    assert found.kv_bytes_per_token == known.kv_bytes_per_token


def test_an_unknown_family_that_leaves_out_its_output_matrix_has_none() -> None:
    fields = dict(catalog.model_entry("llama-3.1-8b").data["config"]) | {"model_type": "brand_new"}
    del fields["tie_word_embeddings"]
    found = model_of(fields, "m")
    assert {part.name for part in found.parts} == {"attention", "mlp", "head"}
    assert "`tie_word_embeddings` is left out" in found.guesses[0]


def test_command_r_is_tied_with_one_norm_a_layer() -> None:
    fields = {"model_type": "cohere", "hidden_size": 8192, "intermediate_size": 22528, "num_attention_heads": 64}
    found = model_of(fields | {"num_hidden_layers": 40, "vocab_size": 256000, "torch_dtype": "float16"}, "command-r")
    assert found.parameters == pytest.approx(34.98e9, rel=1e-3)


@pytest.mark.parametrize("name", ["nemotron-3-nano-30b-a3b", "qwen3.5-27b", "granite-4.0-h-small"])
def test_states_of_an_unknown_family_are_refused(name: str) -> None:
    fields = dict(catalog.model_entry(name).data["config"]) | {"model_type": "brand_new"}
    with pytest.raises(RequestError, match="`model_type` 'brand_new' is not known"):
        model_of(fields, name)


def test_sizes_that_the_nearest_family_does_not_read_are_refused() -> None:
    fields = dict(catalog.model_entry("llama-3.1-8b").data["config"])
    with pytest.raises(RequestError, match="`num_global_key_value_heads` is no field"):
        model_of(fields | {"model_type": "brand_new", "num_global_key_value_heads": 2}, "m")


@pytest.mark.parametrize("name", ["desktop-9950x", "workstation-9995wx", "server-9355p"])
@pytest.mark.parametrize("model", ["kimi-k2.5", "deepseek-v3.2", "nemotron-3-nano-30b-a3b", "gpt-oss-120b"])
def test_shares_of_a_cache_are_shares(name: str, model: str) -> None:
    problem = Problem(
        model=catalog.load_model(model),
        gpu=catalog.load_gpu("rtx-5090"),
        host=host_of(tierloom.Machine.load(name)),
        runtime=RUNTIMES["resident"],
        prompt=8192,
        generate=1024,
    )
    assert 0 < problem.mean_share <= 1
    assert problem.prompt_share <= 1
    assert problem.attention_flop_per_byte > 0
    assert problem.prefill_flop > problem.prompt * problem.model.flop_per_token


def test_a_desktop_runs_a_model_with_experts_that_its_gpu_does_not_hold() -> None:
    answer = tierloom.offload.infer(
        "gpt-oss-120b", "rtx-5090", "desktop-9950x", runtime="resident", batch=1, compare=()
    )
    assert answer.plan.tokens_s > 1


def test_models_and_gpus_are_listed_by_date() -> None:
    for entry, names in ((catalog.model_entry, catalog.model_names()), (catalog.gpu_entry, catalog.gpu_names())):
        dates = [each.released for each in catalog.newest_first(map(entry, names))]
        assert dates == sorted(dates, reverse=True)
        for name in names:
            released = entry(name).data["released"]
            assert released["kind"] in catalog.KINDS
            assert released["source"]


def test_the_catalog_is_of_today() -> None:
    entries = map(catalog.model_entry, catalog.model_names())
    assert sum(entry.released >= "2025" for entry in entries) >= 20
