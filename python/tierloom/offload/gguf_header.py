"""A model from the header of a GGUF file: the sizes of its tensors as they are stored.

Only the header is read, through the ``gguf`` package (the extra ``tierloom[gguf]``); the weights stay on
disk. Tensor and key names are those of the GGUF specification.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from tierloom.errors import RequestError
from tierloom.offload.fields import MOST
from tierloom.offload.model import Active, Model, Part
from tierloom.reading import reading

if TYPE_CHECKING:
    from pathlib import Path

EXPERTS = ("ffn_gate_exps", "ffn_up_exps", "ffn_down_exps", "ffn_gate_up_exps")
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
    family = str(_value(reader, path, "general.architecture"))
    sums = _sums(reader)
    experts = _count(reader, path, f"{family}.expert_count", 0)
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
        message = f"{path}: reading it takes the package `gguf`\nhint: pip install 'tierloom[gguf]'"
        raise RequestError(message) from problem
    return GGUFReader(path)


def _model(reader: Any, path: Path, family: str, parts: tuple[Part, ...], experts: int) -> Model:  # noqa: ANN401
    layers = _count(reader, path, f"{family}.block_count")
    hidden = _count(reader, path, f"{family}.embedding_length")
    heads = _count(reader, path, f"{family}.attention.head_count")
    kv_heads = _count(reader, path, f"{family}.attention.head_count_kv", heads)
    width = _count(reader, path, f"{family}.attention.key_length", hidden // heads)
    values = _count(reader, path, f"{family}.attention.value_length", width)
    inner = _count(reader, path, f"{family}.feed_forward_length", 4 * hidden)
    return Model(
        name=path.stem,
        family=family,
        layers=layers,
        hidden=hidden,
        heads=heads,
        ffn=_count(reader, path, f"{family}.expert_feed_forward_length", inner),
        parts=parts,
        kv_bytes_per_token=2.0 * layers * kv_heads * (width + values),
        score_flop=2.0 * layers * heads * (width + values),
        experts=experts,
        experts_per_token=_count(reader, path, f"{family}.expert_used_count", 0),
        max_positions=_count(reader, path, f"{family}.context_length", 0),
    )


def _sums(reader: Any) -> dict[str, Sum]:  # noqa: ANN401 (the package has no types)
    sums: dict[str, Sum] = {}
    for tensor in reader.tensors:
        layer, part = _place(tensor.name)
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
    return layer, "attention" if what.startswith("attn") else "mlp"


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


def _count(reader: Any, path: Path, key: str, default: int | None = None) -> int:  # noqa: ANN401
    """A number of things: at least one, unless the key may be left out as none."""
    value = _value(reader, path, key, default)
    least = 0 if default == 0 else 1
    if isinstance(value, str | float) or not least <= int(value) <= MOST:
        shown = repr(value)[:40]
        message = f"{path}: `{key}` is {shown}\nhint: it has to be a whole number from {least} to {MOST:.0e}"
        raise RequestError(message)
    return int(value)


def _value(reader: Any, path: Path, key: str, default: int | None = None) -> Any:  # noqa: ANN401
    found = reader.get_field(key)
    if found is not None:
        value = found.contents()
        return max(value) if isinstance(value, list) else value
    if default is None:
        message = f"{path}: there is no `{key}`\nhint: write the file again with a current llama.cpp"
        raise RequestError(message)
    return default
