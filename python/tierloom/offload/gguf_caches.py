"""What a GGUF model's layers keep of a sequence: keys and values, windows of them, and states of a fixed size.

`gguf_header` uses it. A layer without heads of keys and values keeps a state or nothing; one that shares the cache of
an earlier layer keeps none of its own. Where the file leaves out what llama.cpp's code knows, a table here has it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tierloom.offload.gguf_tensors import layers_with
from tierloom.offload.model import INDEXER_KEY_BYTES, STATE, UPDATE_FLOP, Cache

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tierloom.offload.gguf_keys import Header
    from tierloom.offload.model import Part

HALF = 2.0
"""Bytes of a number of the cache: llama.cpp's default is 16 bits."""

SINGLE = 4.0
"""Bytes of a number of a state: llama.cpp keeps states in 32 bits."""

EVERY = {
    "afmoe": 4,
    "cohere2": 4,
    "exaone-moe": 4,
    "exaone4": 4,
    "gemma2": 2,
    "gemma3": 6,
    "gemma3n": 5,
    "gpt-oss": 2,
    "llama4": 4,
    "olmo2": 4,
    "smallthinker": 4,
}
"""Of so many layers the last looks at everything, where llama.cpp's code knows it and the file does not say it."""

WINDOWS = {"llama4": 8192}
"""Windows that llama.cpp's code knows: chunks of Llama 4."""


@dataclass(frozen=True)
class Layer:
    """One layer's heads of keys and values, their widths, and whether it looks at a window only."""

    groups: int
    both: int
    near: bool


def caches_of(header: Header, hidden: int, parts: Iterable[Part]) -> tuple[Cache, ...]:
    """Caches of the layers that attend, by how far they look, and the states of the others."""
    parts = list(parts)
    layers = _layers(header, hidden, parts)
    attending = [layer for layer in layers if layer.groups]
    if header.count("attention.kv_lora_rank", 0) and not _uncompressed(header):
        caches = _latent(header, len(attending))
    else:
        caches = _grouped(header, attending[: len(attending) - header.count("attention.shared_kv_layers", 0)])
    return (*caches, *_states(header, hidden, layers, parts))


def guesses(header: Header) -> tuple[str, ...]:
    """What the file does not say of its caches."""
    window, family, made = header.count("attention.sliding_window", 0), header.family, []
    said = header.has("attention.sliding_window_pattern") or family in EVERY
    if window and not said:
        made.append(f"which layers have the window of {window} tokens is not said: all count as looking at everything")
    if header.count("attention.kv_lora_rank", 0) and _uncompressed(header):
        made.append(
            "`attention.key_length_mla` is not there: llama.cpp then caches keys and values of all heads, many times "
            "the latent vector; files of DeepSeek models converted since April 2025 have it"
        )
    return tuple(made)


def _uncompressed(header: Header) -> bool:
    """Whether llama.cpp keeps the heads of latent attention and not the vector that they are made of.

    Its `src/models/deepseek2.cpp` attends to the vector only where the file has the widths of both; such files have one
    head of keys.
    """
    heads = header.count("attention.head_count", 0)
    return not header.has("attention.key_length_mla") and max(header.each("attention.head_count_kv", heads)) > 1


def _layers(header: Header, hidden: int, parts: list[Part]) -> list[Layer]:
    heads = header.count("attention.head_count", 0)
    groups, near = _groups(header, heads, parts), _near(header)
    width = header.count("attention.key_length", max(1, hidden // max(1, heads)))
    key = {False: width, True: header.count("attention.key_length_swa", width)}
    value = {False: header.count("attention.value_length", width)}
    value[True] = header.count("attention.value_length_swa", value[False])
    return [Layer(count, key[short] + value[short], short) for count, short in zip(groups, near, strict=True)]


def _groups(header: Header, heads: int, parts: list[Part]) -> list[int]:
    """Heads of keys and values in each layer; none in a layer whose state has a constant size.

    Early files of Qwen3-Next do not say which those are: their layers with a state have no output of attention.
    """
    groups = header.each("attention.head_count_kv", heads)
    every = header.count("full_attention_interval", 0)
    stateful = layers_with(parts, "ssm") - layers_with(parts, "attn_output")
    return [0 if layer in stateful or (every and (layer + 1) % every) else count for layer, count in enumerate(groups)]


def _near(header: Header) -> list[bool]:
    """Which layers look at a window only."""
    layers = header.layers
    if not _window(header):
        return [False] * layers
    pattern = header.value("attention.sliding_window_pattern", 0)
    if isinstance(pattern, list):
        return [bool(each) for each in header.each("attention.sliding_window_pattern", 0)]
    every = int(pattern) or EVERY.get(header.family, 1)
    return [(layer + 1) % every != 0 for layer in range(layers)]


def _window(header: Header) -> int:
    return header.count("attention.sliding_window", 0) or WINDOWS.get(header.family, 0)


def _grouped(header: Header, layers: list[Layer]) -> list[Cache]:
    """Keys and values of heads, of all positions and of those within the window."""
    heads, made = header.count("attention.head_count", 0), []
    for near in (False, True):
        alike = [layer for layer in layers if layer.near == near]
        if alike:
            cache = Cache(
                elements=sum(layer.groups * layer.both for layer in alike),
                element_bytes=HALF,
                score_flop=2.0 * heads * sum(layer.both for layer in alike),
                window=_window(header) if near else 0,
            )
            made.append(cache)
    return made


def _latent(header: Header, attending: int) -> list[Cache]:
    """One compressed vector a layer that attends, and the small keys of an indexer where there is one."""
    heads, rank = header.count("attention.head_count"), header.count("attention.kv_lora_rank")
    rope, chosen = header.count("rope.dimension_count"), header.count("attention.indexer.top_k", 0)
    score = 2.0 * attending * heads * (2 * rank + rope)
    made = [Cache(elements=attending * (rank + rope), element_bytes=HALF, score_flop=score, looks=chosen)]
    if chosen:
        width = attending * header.count("attention.indexer.key_length")
        score = 2.0 * width * header.count("attention.indexer.head_count")
        made.append(Cache(elements=width, element_bytes=INDEXER_KEY_BYTES, score_flop=score))
    return made


def _states(header: Header, hidden: int, layers: list[Layer], parts: list[Part]) -> list[Cache]:
    """States of the layers that have tensors of one; where the tensors do not tell, of those without heads, or of all.

    The last inputs of a convolution stand beside the state of a recurrence.
    """
    without = [number for number, layer in enumerate(layers) if not layer.groups] or range(len(layers))
    recurrent, kept = _state(header, hidden)
    named = {kind: len(layers_with(parts, kind)) for kind in ("ssm", "shortconv", "time_mix")}
    count = next((found for found in named.values() if found), len(without))
    made = []
    if recurrent:
        flop = UPDATE_FLOP * count * recurrent
        made.append(Cache(elements=count * recurrent, element_bytes=SINGLE, score_flop=flop, window=STATE))
    if kept:
        made.append(Cache(elements=count * kept, element_bytes=SINGLE, window=STATE))
    return made


def _state(header: Header, hidden: int) -> tuple[int, int]:
    """Numbers of one layer's recurrence, and of the inputs that it keeps: Mamba, delta networks, short convolutions."""
    inner, taps = header.count("ssm.inner_size", 0), header.count("ssm.conv_kernel", 0)
    if inner:
        state = header.count("ssm.state_size")
        return inner * state, (inner + 2 * header.count("ssm.group_count", 0) * state) * (taps - 1)
    width, heads = header.count("kda.head_dim", 0), header.count("attention.head_count", 0)
    if width:
        return heads * width**2, 3 * heads * width * (taps - 1)
    if header.has("wkv.head_size"):
        return hidden * header.count("wkv.head_size"), hidden * header.count("token_shift_count", 2)
    return 0, hidden * max(0, header.count("shortconv.l_cache", 0) - 1)
