"""A model from the header of a GGUF file: the sizes of its tensors as they are stored.

Only headers are read, through the ``gguf`` package (the extra ``tierloom[gguf]``); the weights stay on
disk. Tensor and key names are those of the GGUF specification.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tierloom.offload import gguf_shards
from tierloom.offload.gguf_caches import caches_of, guesses
from tierloom.offload.gguf_keys import Header
from tierloom.offload.gguf_reader import open_header
from tierloom.offload.gguf_tensors import parts_of
from tierloom.offload.model import STATE, Model, Part
from tierloom.readers import reading

if TYPE_CHECKING:
    from pathlib import Path


def read_gguf(path: Path) -> Model:
    """The model that a GGUF file holds, with all its shards.

    Raises:
        RequestError: The package is not installed, or the file is no GGUF file, no model or lacks a key.
    """
    with reading(path, "GGUF file", "give a file that llama.cpp reads"):
        shards = gguf_shards.opened(path, open_header)
        family = str(Header(shards.first, path, "general").value("architecture"))
        header = Header(shards.first, path, family)
        parts = parts_of(shards.tensors, header.layers, header.count("expert_count", 0))
        return _model(header, parts, (*guesses(header), *_missing(shards.missing)))


def _model(header: Header, parts: tuple[Part, ...], said: tuple[str, ...]) -> Model:
    hidden = header.count("embedding_length")
    inner = header.count("feed_forward_length", 4 * hidden)
    draft = next((part for part in parts if part.name == "draft"), None)
    caches = caches_of(header, hidden, parts)
    # Only who keeps states may do without heads.
    least = 0 if any(cache.window == STATE for cache in caches) else None
    return Model(
        name=header.path.stem,
        family=header.family,
        layers=header.layers,
        hidden=hidden,
        heads=header.count("attention.head_count", least) or 1,
        ffn=header.count("expert_feed_forward_length", inner),
        parts=tuple(part for part in parts if part is not draft),
        caches=caches,
        experts=header.count("expert_count", 0),
        experts_per_token=header.count("expert_used_count", 0),
        max_positions=header.count("context_length", 0),
        draft=draft,
        guesses=said,
    )


def _missing(bytes_: int) -> tuple[str, ...]:
    if not bytes_:
        return ()
    return (f"{bytes_ / 1e9:,.3g} GB of weights are missing from the file: sizes are those that its header announces",)
