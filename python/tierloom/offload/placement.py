"""Where the weights, the KV cache and the hidden states of a block are. A noun of the planner's answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

Bytes = Mapping[str, float]
"""Bytes by place: ``gpu`` or a tier."""


@dataclass(frozen=True, kw_only=True)
class Placement:
    """A block of sequences and where its data is.

    Attributes:
        batch: Sequences of the block, b.
        gpu_batch: Sequences that the GPU works on at a time, g.
        weights: By part of the model, bytes in each place.
        kv: KV cache of all sequences at full length, bytes in each place.
        hidden: Hidden states of all sequences, bytes in each place.
    """

    batch: int
    gpu_batch: int
    weights: Mapping[str, Bytes]
    kv: Bytes
    hidden: Bytes

    @property
    def weights_by_place(self) -> dict[str, float]:
        """Bytes of all weights in each place."""
        total: dict[str, float] = {}
        for placed in self.weights.values():
            for place, amount in placed.items():
                total[place] = total.get(place, 0.0) + amount
        return total

    @property
    def gpu_batches(self) -> int:
        """GPU batches of the block; the last may be smaller."""
        return -(-self.batch // self.gpu_batch)


def share(placed: Bytes, place: str) -> float:
    """Share of what is placed that is in one place."""
    whole = sum(placed.values())
    return placed.get(place, 0.0) / whole if whole > 0.0 else 0.0
