"""Tensors of a GGUF file, put into the parts of a model by their names.

`gguf_header` uses it. ``blk.N.WHAT.weight`` belongs to layer N; what a table is looked up in by rows, one row a token,
is no part that a step reads, and a model without an output matrix multiplies with its table of words instead.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tierloom.offload.model import Active, Part, Tensor

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

MIXING = ("attn", "ssm", "indexer", "shortconv", "time_mix")
"""What names of tensors begin with that mix positions: attention, and what stands in its place."""

TABLES = ("token_embd", "position_embd", "token_types", "per_layer_token_embd")
"""Tables of which a token reads one row."""

WORDS, OUTPUT = "token_embd", "output"

ACTIVE: Mapping[str, Active] = {"experts": "routed", "embedding": "rows"}


@dataclass
class Found:
    """What was found of one part."""

    tensors: list[Tensor] = field(default_factory=list)
    matrices: int = 0

    @property
    def layers(self) -> tuple[int, ...]:
        """The layers that have it."""
        return tuple(sorted({tensor.layer for tensor in self.tensors if tensor.layer is not None}))


def parts_of(tensors: Iterable[Any], layers: int, experts: int) -> tuple[Part, ...]:
    """The parts of a model, a draft among them where layers predict ahead.

    Args:
        tensors: Those of the file, as the package reads them.
        layers: Layers of the model itself: later ones are the draft's.
        experts: Routed experts of a layer.
    """
    tensors = list(tensors)
    tied = not any(_words(each.name)[1] == OUTPUT for each in tensors)
    found: dict[str, Found] = {}
    for each in tensors:
        part, layer = _place(each.name, layers, tied=tied)
        sums = found.setdefault(part, Found())
        sums.tensors.append(Tensor(each.name, layer, int(each.n_elements), int(each.n_bytes)))
        sums.matrices += len(each.shape) > 1
    return tuple(_part(name, sums, experts) for name, sums in found.items())


def layers_with(parts: Iterable[Part], kind: str) -> set[int]:
    """Layers with tensors of a kind: ``ssm`` of state spaces."""
    named = (tensor for part in parts for tensor in part.named)
    return {each.layer for each in named if each.layer is not None and _words(each.name)[1].startswith(kind)}


def _words(name: str) -> tuple[int | None, str]:
    """Layer and kind of a tensor: ``blk.3.attn_q.weight`` is ``attn_q`` of layer 3."""
    words = name.split(".")
    if words[0] == "blk" and len(words) > 2 and words[1].isdecimal():
        return int(words[1]), words[2]
    return None, words[0]


def _place(name: str, layers: int, *, tied: bool) -> tuple[str, int | None]:
    """Part and layer of a tensor."""
    layer, what = _words(name)
    if layer is not None and layer >= layers:
        return "draft", layer
    if layer is None:
        table = what in TABLES and not (tied and what == WORDS)
        return "embedding" if table else "head", None
    if what.endswith("_exps"):
        return "experts", layer
    return "attention" if what.startswith(MIXING) else "mlp", layer


def _part(name: str, found: Found, experts: int) -> Part:
    layers = max(1, len(found.layers))
    a_layer = experts if name == "experts" and experts else found.matrices // layers
    return Part(
        name=name,
        parameters=sum(tensor.parameters for tensor in found.tensors),
        bytes=float(sum(tensor.bytes for tensor in found.tensors)),
        layers=layers,
        tensors=max(1, a_layer),
        active=ACTIVE.get(name, "all"),
        numbers=found.layers,
        named=tuple(found.tensors),
    )
