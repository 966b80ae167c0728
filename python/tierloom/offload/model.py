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

STATE = 1
"""Positions that a state-space layer keeps: its state is as large after one token as after a million."""

UPDATE_FLOP = 6.0
"""Operations a token and number of a state: the new outer product, its addition to the decayed state, and the read
of the state by the query, two each."""

INDEXER_KEY_BYTES = 1.0 + 4.0 / 128.0
"""The indexer's keys are stored in eight bits with one 32-bit scale for each key of 128 (DeepSeek-V3.2-Exp)."""


@dataclass(frozen=True)
class Tensor:
    """One tensor as its file names it.

    Attributes:
        name: As in the file.
        layer: Counted from none; none for what stands outside the layers.
        parameters: Numbers in it.
        bytes: Size as it is stored.
    """

    name: str
    layer: int | None
    parameters: int
    bytes: float


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
        numbers: Which layers have it, counted from none, where not the first do.
        named: All its tensors, where the file that was read names them.
    """

    name: str
    parameters: int
    bytes: float
    layers: int
    tensors: int
    active: Active = "all"
    numbers: tuple[int, ...] = ()
    named: tuple[Tensor, ...] = ()

    def stored_in(self, bits: float) -> Part:
        """The same part in `bits` bits a parameter, scales included."""
        named = (replace(tensor, bytes=tensor.parameters * bits / 8.0) for tensor in self.named)
        return replace(self, bytes=self.parameters * bits / 8.0, named=tuple(named))


@dataclass(frozen=True, kw_only=True)
class Cache:
    """What layers of one kind keep of a sequence, all layers of that kind together.

    Attributes:
        elements: Numbers that one position keeps.
        element_bytes: Bytes of each.
        score_flop: Attention operations of one token for each position that it looks at.
        window: Positions that are kept, the newest; 0 keeps all, `STATE` is a state of constant size.
        looks: Positions that a token attends to, of those kept (sparse attention); 0 is all of them.
    """

    elements: float
    element_bytes: float
    score_flop: float = 0.0
    window: int = 0
    looks: int = 0

    @property
    def position_bytes(self) -> float:
        """Bytes that one position keeps."""
        return self.elements * self.element_bytes

    def kept(self, tokens: float) -> float:
        """Positions that are kept of a sequence of so many tokens."""
        return min(tokens, self.window) if self.window else tokens

    def looked(self, tokens: float) -> float:
        """Positions that the last of so many tokens attends to."""
        kept = self.kept(tokens)
        return min(kept, self.looks) if self.looks else kept

    def all_looked(self, tokens: float) -> float:
        """Positions that all tokens of a prompt attend to together: a triangle, cut off where no more are looked at."""
        most = min(tokens, self.window or tokens, self.looks or tokens)
        return tokens * most - 0.5 * most**2


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
        caches: What its layers keep of a sequence, by kind of layer.
        element_bytes: Bytes of an activation.
        experts: Routed experts of a layer; 0 for a dense model.
        experts_per_token: Experts that a token is routed to.
        max_positions: Longest context that the model was made for; 0 when unknown.
        draft: Layers that predict several tokens at once; the checkpoint has them, a run without speculation reads
            none of them.
        guesses: What its file does not say and was taken for granted, a sentence each.
    """

    name: str
    family: str
    layers: int
    hidden: int
    heads: int
    ffn: int
    parts: tuple[Part, ...]
    caches: tuple[Cache, ...]
    element_bytes: float = 2.0
    experts: int = 0
    experts_per_token: int = 0
    max_positions: int = 0
    draft: Part | None = None
    guesses: tuple[str, ...] = ()

    @property
    def parameters(self) -> int:
        """Number of parameters, without the draft's."""
        return sum(part.parameters for part in self.parts)

    @property
    def weight_bytes(self) -> float:
        """All weights that a run reads, bytes."""
        return sum(part.bytes for part in self.parts)

    @property
    def checkpoint_bytes(self) -> float:
        """What the weights take on disk: those that a run reads, and the draft's."""
        return self.weight_bytes + (self.draft.bytes if self.draft else 0.0)

    @property
    def kv_bytes_per_token(self) -> float:
        """Bytes by which each token makes the cache of a long sequence larger."""
        return sum(cache.position_bytes for cache in self.caches if not cache.window)

    def cache_bytes(self, tokens: float) -> float:
        """Cache of one sequence of so many tokens, states included."""
        return sum(cache.position_bytes * cache.kept(tokens) for cache in self.caches)

    def read_bytes(self, tokens: float) -> float:
        """Cache that decoding one more token of such a sequence reads."""
        return sum(cache.position_bytes * cache.looked(tokens) for cache in self.caches)

    def attention_flop(self, tokens: float) -> float:
        """Attention operations of one token after so many."""
        return sum(cache.score_flop * cache.looked(tokens) for cache in self.caches)

    def prefill_attention_flop(self, tokens: float) -> float:
        """Attention operations of a whole prompt, each token looking at those before it."""
        return sum(cache.score_flop * cache.all_looked(tokens) for cache in self.caches)

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
        parts = tuple(part.stored_in(bits) for part in self.parts)
        return replace(self, parts=parts, draft=self.draft and self.draft.stored_in(bits))

    def with_kv_bits(self, bits: float) -> Model:
        """The model with its KV cache stored in `bits` bits an element; states and sparse keys stay as they are."""
        caches = tuple(
            replace(cache, element_bytes=bits / 8.0)
            if cache.window != STATE and cache.element_bytes == self.element_bytes
            else cache
            for cache in self.caches
        )
        return replace(self, caches=caches)

    def _met(self, part: Part) -> float:
        """Share of a part's parameters that one token meets."""
        return self.active_share(part, 1.0)
