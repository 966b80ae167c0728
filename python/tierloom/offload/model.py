"""A language model as an offloading planner sees it: classes of weights, the KV cache, operations.

A noun. `architectures` makes one from the fields of a ``config.json``, `gguf_header` from the tensor
list of a GGUF file; the engines read nothing else of a model. Bytes are those of the whole model, all
layers together: engines count passes over the model, not layers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

Active = Literal["all", "routed", "rows"]
"""Which share of a part one pass reads: all of it, the experts that its tokens are routed to, or one
row a token (the input embedding)."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """Weights of one class.

    Attributes:
        name: ``attention``, ``mlp``, ``experts``, ``embedding`` or ``head``.
        parameters: Number of parameters, all layers together.
        bytes: Size as it is stored.
        layers: Layers that have it; 1 for what stands outside the layers.
        tensors: Large tensors of it in one layer: the grains that a placement can move.
        active: What one pass reads of it.
    """

    name: str
    parameters: int
    bytes: float
    layers: int
    tensors: int
    active: Active = "all"


@dataclass(frozen=True, kw_only=True)
class Model:
    """A decoder (or, for training, an encoder) by its sizes.

    Attributes:
        name: Short name.
        family: ``model_type`` of its ``config.json``.
        layers: Transformer layers.
        hidden: Width of the residual stream.
        heads: Query heads.
        ffn: Widest inner width of a feed-forward block that one token passes.
        parts: Its weights.
        kv_bytes_per_token: KV cache of one token, all layers together, bytes.
        score_flop: Attention operations of one token for each position that it looks at, all layers.
        element_bytes: Bytes of an activation.
        experts: Routed experts of a layer; 0 for a dense model.
        experts_per_token: Experts that a token is routed to.
        max_positions: Longest context that the model was made for; 0 when unknown.
    """

    name: str
    family: str
    layers: int
    hidden: int
    heads: int
    ffn: int
    parts: tuple[Part, ...]
    kv_bytes_per_token: float
    score_flop: float
    element_bytes: float = 2.0
    experts: int = 0
    experts_per_token: int = 0
    max_positions: int = 0

    @property
    def parameters(self) -> int:
        """Number of parameters."""
        return sum(part.parameters for part in self.parts)

    @property
    def weight_bytes(self) -> float:
        """All weights, bytes."""
        return sum(part.bytes for part in self.parts)

    @property
    def flop_per_token(self) -> float:
        """Operations of one token in the matrix products, two a parameter that it meets."""
        return 2.0 * sum(part.parameters * self._met(part) for part in self.parts)

    @property
    def layer_bytes(self) -> float:
        """Weights of one layer that a runtime streams as a whole: an expert layer counts the experts of one token."""
        within = (part for part in self.parts if part.name not in {"embedding", "head"})
        return sum(part.bytes * self._met(part) / part.layers for part in within)

    def active_share(self, part: Part, tokens: float) -> float:
        """Share of a part that a pass over `tokens` tokens reads.

        Routing is taken as uniform and independent, so a pass over b tokens meets ``1 - (1 - k/E)^b``
        of E experts when each token goes to k: the most experts that any routing of that kind meets.
        """
        if part.active == "rows":
            return 0.0
        if part.active == "all":
            return 1.0
        missed: float = (1.0 - self.experts_per_token / self.experts) ** max(tokens, 1.0)
        return 1.0 - missed

    def with_weight_bits(self, bits: float) -> Model:
        """The model with all its weights stored in `bits` bits a parameter, scales included."""
        parts = tuple(replace(part, bytes=part.parameters * bits / 8.0) for part in self.parts)
        return replace(self, parts=parts)

    def with_kv_bits(self, bits: float) -> Model:
        """The model with its KV cache stored in `bits` bits an element instead of an activation's."""
        return replace(self, kv_bytes_per_token=self.kv_bytes_per_token * bits / 8.0 / self.element_bytes)

    def _met(self, part: Part) -> float:
        """Share of a part's parameters that one token meets."""
        return self.active_share(part, 1.0)
