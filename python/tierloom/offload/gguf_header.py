"""A model from the header of a GGUF file: the sizes of its tensors as they are stored.

Only the header is read, through the ``gguf`` package (the extra ``tierloom[gguf]``); the weights stay on
disk. Tensor and key names are those of the GGUF specification.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from tierloom.errors import RequestError
from tierloom.offload.gguf_keys import Header, caches_of
from tierloom.offload.model import Active, Model, Part
from tierloom.readers import reading

if TYPE_CHECKING:
    from pathlib import Path

EXPERTS = ("ffn_gate_exps", "ffn_up_exps", "ffn_down_exps", "ffn_gate_up_exps")
MIXING = ("attn", "ssm", "indexer")
PARTS: tuple[tuple[str, str], ...] = (("token_embd", "embedding"), ("output", "head"), ("attn", "attention"))


@dataclass
class Sum:
    """What was found of one part."""

    parameters: int = 0
    size: int = 0
    layers: set[str] = field(default_factory=set)
    tensors: int = 0


def read_gguf(path: Path) -> Model:
    """The model that a GGUF file holds.

    Raises:
        RequestError: The package is not installed, or the file is no GGUF file or lacks a key.
    """
    with reading(path, "GGUF file", "give a file that llama.cpp reads"):
        return _read(_reader(path), path)


def _read(reader: Any, path: Path) -> Model:  # noqa: ANN401 (the package has no types)
    family = str(Header(reader, path, "general").value("architecture"))
    header = Header(reader, path, family)
    sums = _sums(reader, header.layers)
    experts = header.count("expert_count", 0)
    if experts and "experts" in sums:
        sums["experts"].tensors = experts * max(1, len(sums["experts"].layers))
    parts = [_part(name, found) for name, found in sums.items()]
    tied = "head" not in sums
    if tied:
        parts = [_as_head(part) if part.name == "embedding" else part for part in parts]
    return _model(reader, path, family, tuple(parts), experts)


def _reader(path: Path) -> Any:  # noqa: ANN401 (the package has no types)
    try:
        from gguf import GGUFReader
    except ImportError as problem:
        message = f"{path}: reading it takes the package `gguf`\nhint: pip install '.[gguf]'"
        raise RequestError(message) from problem
    return GGUFReader(path)


def _model(reader: Any, path: Path, family: str, parts: tuple[Part, ...], experts: int) -> Model:  # noqa: ANN401
    header = Header(reader, path, family)
    layers = header.layers
    hidden = header.count("embedding_length")
    inner = header.count("feed_forward_length", 4 * hidden)
    draft = next((part for part in parts if part.name == "draft"), None)
    return Model(
        name=path.stem,
        family=family,
        layers=layers,
        hidden=hidden,
        heads=header.count("attention.head_count"),
        ffn=header.count("expert_feed_forward_length", inner),
        parts=tuple(part for part in parts if part is not draft),
        caches=caches_of(header, hidden),
        experts=experts,
        experts_per_token=header.count("expert_used_count", 0),
        max_positions=header.count("context_length", 0),
        draft=draft,
    )


def _sums(reader: Any, layers: int) -> dict[str, Sum]:  # noqa: ANN401 (the package has no types)
    sums: dict[str, Sum] = {}
    for tensor in reader.tensors:
        layer, part = _place(tensor.name)
        if layer.isdecimal() and int(layer) >= layers:
            part = "draft"
        found = sums.setdefault(part, Sum())
        found.parameters += int(tensor.n_elements)
        found.size += int(tensor.n_bytes)
        found.layers.add(layer)
        found.tensors += len(tensor.shape) > 1
    return sums


def _place(name: str) -> tuple[str, str]:
    """Layer and part of a tensor by its name: ``blk.N.attn_q.weight`` is attention of layer N."""
    words = name.split(".")
    layer, what = (words[1], words[2]) if words[0] == "blk" else ("", words[0])
    if what in EXPERTS:
        return layer, "experts"
    if not layer:
        return layer, next((part for start, part in PARTS if what == start), "head")
    return layer, "attention" if what.startswith(MIXING) else "mlp"


def _part(name: str, found: Sum) -> Part:
    layers = len(found.layers)
    active: Active = {"experts": "routed", "embedding": "rows"}.get(name, "all")  # type: ignore[assignment]
    return Part(
        name=name,
        parameters=found.parameters,
        bytes=float(found.size),
        layers=layers,
        tensors=max(1, found.tensors // layers),
        active=active,
    )


def _as_head(part: Part) -> Part:
    """A model without an output matrix multiplies with its embedding."""
    return replace(part, name="head", active="all")
