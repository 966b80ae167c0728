"""From the fields of a Hugging Face ``config.json`` to a `Model`.

An architecture is one function (dense, with routed experts, or a hybrid) and one line in `FAMILIES`; tests hold the
counts of parameters against the published totals. Of models that also see or hear, the language model is read
(``text_config``, or what `INNER` has in its place).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tierloom.errors import RequestError
from tierloom.offload import checkpoint
from tierloom.offload import dense_architectures as dense
from tierloom.offload import routed_architectures as routed
from tierloom.offload.fields import Fields
from tierloom.offload.model import Model
from tierloom.offload.nearest_family import nearest, readable
from tierloom.offload.state_space import granite_hybrid, nemotron_h, qwen3_next

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

INNER = ("text_config", "llm_config", "language_config", "thinker_config")
"""Tables of a config that hold the language model: of most, of InternVL, of DeepSeek-VL2, of Qwen's Omni models."""


def model_of(config: Mapping[str, object], name: str, file: str = "config.json") -> Model:
    """A model from the fields of its ``config.json``.

    Args:
        config: The document.
        name: Short name of the model.
        file: What errors should call the document.

    Raises:
        RequestError: The architecture is not known, or a field that says a size is missing or unknown.
    """
    for key in INNER:
        inner = config.get(key)
        if isinstance(inner, dict):
            return model_of(_language_model(config, inner), name, f"{file}, {key}")
    fields = Fields(config, file)
    family = fields.word("model_type", "")
    if family not in FAMILIES:
        return _as_nearest(config, family, name, file)
    model = fields.model(FAMILIES[family], name)
    guesses = (*fields.guesses, *checkpoint.cache_guess(fields))
    return replace(checkpoint.as_stored(model, fields), guesses=guesses)


def _as_nearest(config: Mapping[str, object], family: str, name: str, file: str) -> Model:
    """A model of an unknown family by the architecture whose fields it has, with the word that it is so."""
    near, why = nearest(config), "and its fields do not show which known architecture it is like"
    if near:
        try:
            model = model_of(readable(config, near), name, file)
        except RequestError as problem:
            why = f"and as {near!r} it cannot be read: {str(problem).partition(chr(10))[0]}"
        else:
            told = f"`model_type` {family!r} is not known: counted as {near!r}, whose fields it has"
            if "tie_word_embeddings" not in config:
                told += ", its output matrix as its embedding, for `tie_word_embeddings` is left out"
            return replace(model, family=family, guesses=(told, *model.guesses))
    message = (
        f"{file}: `model_type` {family!r} is not known, {why}\n"
        f"hint: give a GGUF file of the model; known are {', '.join(sorted(FAMILIES))}"
    )
    raise RequestError(message)


def _language_model(config: Mapping[str, object], inner: Mapping[str, object]) -> dict[str, object]:
    """The language model of one that also sees or hears, with what the whole says of numbers and storage."""
    shared = ("torch_dtype", "dtype", "tie_word_embeddings", *checkpoint.KEYS)
    return {name: config[name] for name in shared if name in config} | dict(inner)


FAMILIES: dict[str, Callable[[Fields, str], Model]] = {
    "bert": dense.bert,
    "cohere": dense.cohere,
    "cohere2": dense.cohere2,
    "deepseek_v2": routed.deepseek,
    "deepseek_v3": routed.deepseek,
    "deepseek_v32": routed.deepseek_sparse,
    "dots1": routed.dots1,
    "ernie4_5": dense.llama,
    "ernie4_5_moe": routed.ernie4_5_moe,
    "exaone4": dense.exaone4,
    "exaone4_5_text": dense.exaone4,
    "gemma": dense.gemma,
    "gemma2": dense.gemma2,
    "gemma3_text": dense.gemma3,
    "gemma3n_text": dense.gemma3n,
    "gemma4_text": dense.gemma4,
    "glm4": dense.glm4,
    "glm4_moe": routed.glm4_moe,
    "glm4_moe_lite": routed.deepseek,
    "glm_moe_dsa": routed.deepseek_sparse,
    "gpt2": dense.gpt2,
    "gpt_oss": routed.gpt_oss,
    "granite": dense.llama,
    "granitemoehybrid": granite_hybrid,
    "hunyuan_v1_dense": dense.qwen3,
    "kimi_k2": routed.deepseek,
    "llama": dense.llama,
    "llama4_text": routed.llama4,
    "mimo": dense.qwen2,
    "mimo_v2_flash": routed.mimo_v2,
    "minimax_m2": routed.minimax_m2,
    "ministral3": dense.llama,
    "mistral": dense.llama,
    "mixtral": routed.mixtral,
    "nemotron_h": nemotron_h,
    "olmo2": dense.olmo2,
    "olmo3": dense.olmo3,
    "opt": dense.opt,
    "phi3": dense.llama,
    "qwen2": dense.qwen2,
    "qwen2_5_omni_text": dense.qwen2,
    "qwen2_5_vl": dense.qwen2,
    "qwen2_5_vl_text": dense.qwen2,
    "qwen2_moe": routed.qwen2_moe,
    "qwen2_vl": dense.qwen2,
    "qwen2_vl_text": dense.qwen2,
    "qwen3": dense.qwen3,
    "qwen3_5_moe_text": qwen3_next,
    "qwen3_5_text": qwen3_next,
    "qwen3_moe": routed.qwen3_moe,
    "qwen3_next": qwen3_next,
    "qwen3_omni_moe_text": routed.qwen3_moe,
    "qwen3_vl_moe_text": routed.qwen3_moe,
    "qwen3_vl_text": dense.qwen3,
    "seed_oss": dense.qwen2,
    "smollm3": dense.llama,
}
