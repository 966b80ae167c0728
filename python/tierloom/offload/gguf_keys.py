"""The keys of a GGUF header, and what a model's layers keep of a sequence by them.

`gguf_header` uses it. Names of keys are those of the GGUF specification and of llama.cpp's `src/llama-arch.cpp`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tierloom.errors import RequestError
from tierloom.offload.fields import MOST
from tierloom.offload.model import STATE, Cache

if TYPE_CHECKING:
    from pathlib import Path

HALF = 2.0
"""Bytes of a number of the cache: llama.cpp's default is 16 bits."""

SINGLE = 4.0
"""Bytes of a number of a state: llama.cpp keeps states in 32 bits."""

UPDATE_FLOP = 6.0
"""Operations a token and number of a state, as in `state_space`."""

AGAIN = "\nhint: write the file again with a current llama.cpp"

EVERY = {"cohere2": 4, "gemma2": 2, "gemma3": 6, "gpt-oss": 2}
"""Of so many layers the last looks at everything, where llama.cpp knows it and the file does not say it."""


@dataclass(frozen=True)
class Header:
    """The keys of one architecture in a header.

    Attributes:
        reader: The package's reader.
        path: The file, for errors.
        family: Its architecture, which its keys begin with.
    """

    reader: Any
    path: Path
    family: str

    @property
    def layers(self) -> int:
        """Layers of the model, without those that predict several tokens at once."""
        return max(1, self.count("block_count") - self.count("nextn_predict_layers", 0))

    def count(self, key: str, default: int | None = None) -> int:
        """A number of things: at least one, unless the key may be left out as none; the most of a list.

        Raises:
            RequestError: The key is missing, or no such number.
        """
        value = self.value(key, default)
        value = max(value, default=None) if isinstance(value, list) else value
        return self._whole(key, value, 0 if default == 0 else 1)

    def each(self, key: str, default: int) -> list[int]:
        """A number for each layer: the list of the key, or the same for all.

        Raises:
            RequestError: One of them is no such number, or there are fewer than layers.
        """
        value = self.value(key, default)
        listed = value if isinstance(value, list) else [value] * self.layers
        if len(listed) < self.layers:
            message = f"{self.path}: `{self.family}.{key}` has {len(listed)} numbers for {self.layers} layers{AGAIN}"
            raise RequestError(message)
        return [self._whole(key, each, 0) for each in listed[: self.layers]]

    def value(self, key: str, default: int | None = None) -> Any:  # noqa: ANN401 (the package has no types)
        """What the header says, or the default.

        Raises:
            RequestError: It says nothing, and there is no default.
        """
        found = self.reader.get_field(f"{self.family}.{key}")
        if found is not None:
            return found.contents()
        if default is None:
            message = f"{self.path}: there is no `{self.family}.{key}`{AGAIN}"
            raise RequestError(message)
        return default

    def _whole(self, key: str, value: Any, least: int) -> int:  # noqa: ANN401 (the package has no types)
        if value is None or isinstance(value, str | float) or not least <= int(value) <= MOST:
            message = (
                f"{self.path}: `{self.family}.{key}` is {repr(value)[:40]}\n"
                f"hint: it has to be a whole number from {least} to {MOST:.0e}"
            )
            raise RequestError(message)
        return int(value)


def caches_of(header: Header, hidden: int) -> tuple[Cache, ...]:
    """Caches of the layers that attend, by how far they look, and the states of the others."""
    heads, layers = header.count("attention.head_count"), header.layers
    groups = _groups(header, heads)
    rank, window = header.count("attention.kv_lora_rank", 0), header.count("attention.sliding_window", 0)
    states = _states(header, groups.count(0) or layers)
    if rank:
        rope, attending = header.count("rope.dimension_count"), layers - groups.count(0)
        score = 2.0 * attending * heads * (2 * rank + rope)
        return (Cache(elements=attending * (rank + rope), element_bytes=HALF, score_flop=score), *states)
    width = header.count("attention.key_length", max(1, hidden // heads))
    both = width + header.count("attention.value_length", width)
    near = _near(header, window)
    made = []
    for windowed in (False, True):
        kept = [count for count, short in zip(groups, near, strict=True) if count and short == windowed]
        if kept:
            score = 2.0 * len(kept) * heads * both
            reach = window if windowed else 0
            made.append(Cache(elements=sum(kept) * both, element_bytes=HALF, score_flop=score, window=reach))
    return (*made, *states)


def _groups(header: Header, heads: int) -> list[int]:
    """Heads of keys and values in each layer; none in a layer whose state has a constant size."""
    groups = header.each("attention.head_count_kv", heads)
    every = header.count("full_attention_interval", 0)
    return [0 if every and (layer + 1) % every else count for layer, count in enumerate(groups)]


def _near(header: Header, window: int) -> list[bool]:
    """Which layers look at a window only."""
    pattern, layers = header.value("attention.sliding_window_pattern", 0), header.layers
    if not window:
        return [False] * layers
    if isinstance(pattern, list):
        return [bool(each) for each in header.each("attention.sliding_window_pattern", 0)]
    every = int(pattern) or EVERY.get(header.family, 1)
    return [(layer + 1) % every != 0 for layer in range(layers)]


def _states(header: Header, layers: int) -> tuple[Cache, ...]:
    """States of the layers that have no heads; where all have heads, a state stands beside each (Falcon-H1)."""
    inner = header.count("ssm.inner_size", 0)
    if not inner:
        return ()
    state, taps = header.count("ssm.state_size"), header.count("ssm.conv_kernel")
    convolved = inner + 2 * header.count("ssm.group_count", 0) * state
    numbers = layers * inner * state
    return (
        Cache(elements=numbers, element_bytes=SINGLE, score_flop=UPDATE_FLOP * numbers, window=STATE),
        Cache(elements=layers * convolved * (taps - 1), element_bytes=SINGLE, window=STATE),
    )
