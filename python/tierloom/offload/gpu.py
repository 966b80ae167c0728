"""A GPU and its link to the host, as an offloading planner sees it. A noun."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Gpu:
    """One GPU.

    Attributes:
        name: Short name.
        memory_bytes: Capacity of its memory.
        memory_gb_s: Bandwidth of its memory, GB/s.
        tflop_s: Peak of its matrix units in 16 bits, dense, TFLOP/s.
        in_gb_s: Link from the host, what large pinned copies reach, GB/s.
        out_gb_s: Link to the host, GB/s.
        copy_ns: Fixed cost of one copy, ns.
        prefill_efficiency: Share of the peak that prefill and training reach.
        decode_efficiency: Share of the peak that decode reaches.
        memory_efficiency: Share of the memory's bandwidth that attention over the KV cache reaches.
    """

    name: str
    memory_bytes: float
    memory_gb_s: float
    tflop_s: float
    in_gb_s: float
    out_gb_s: float
    copy_ns: float = 8000.0
    prefill_efficiency: float = 0.48
    decode_efficiency: float = 0.16
    memory_efficiency: float = 0.5

    @property
    def prefill_flop_s(self) -> float:
        """Operations per second in prefill and training."""
        return self.tflop_s * 1e12 * self.prefill_efficiency

    @property
    def decode_flop_s(self) -> float:
        """Operations per second in decode."""
        return self.tflop_s * 1e12 * self.decode_efficiency

    @property
    def memory_bytes_s(self) -> float:
        """Bytes per second that attention reads from the GPU's own memory."""
        return self.memory_gb_s * 1e9 * self.memory_efficiency
