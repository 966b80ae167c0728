"""How a serving runtime executes: what it overlaps, what it stages, what it computes where.

A noun; one constant for each kind of runtime that the planner knows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tierloom.errors import RequestError


@dataclass(frozen=True, kw_only=True)
class Runtime:
    """What a runtime does with time and memory.

    Attributes:
        name: As on the command line.
        about: One line for people.
        overlapped: Decode loads weights, computes attention on the CPU and works on the GPU at the same
            time; else one after the other.
        cpu_attention: The CPU attends to the KV cache where it lies; else the cache is copied to the GPU.
        cpu_weights: The CPU multiplies with weights where they lie in decode; else they are copied.
        staged: Host memory of the KV cache is not pinned, so copies go through one thread and a buffer.
        halves: Attention and feed-forward are layers of their own. Hidden states move after each, and the GPU's work
            waits for that; stores of the KV cache are hidden by attention alone.
        amplification: Bytes that CPU attention moves for each byte of KV cache.
        attention_flop_s: Operations per second of CPU attention on the whole socket; per core when
            `per_core`.
        product_flop_s: Operations per second of the CPU's matrix products, likewise.
        per_core: The two rates are those of one core.
        score_matrix: The GPU holds the whole matrix of attention scores in prefill.
        continuous: Every decode step takes all users in flight, and prompts are prefilled one by one as they
            come, a chunk in a pass (Orca, OSDI 2022); else a block is prefilled together, then decoded.
        kv_on_gpu: The KV cache of all users in flight stays on the GPU.
        chunk_tokens: Tokens that a pass of prefill takes where no score matrix is held.
        rereads: Each GPU batch of a block reads the weights from the GPU's memory again; else once a step.
        gpu_margin: Share of the GPU's memory that a plan may fill.
        host_margin: Share of each tier that a plan may fill.
    """

    name: str
    about: str
    overlapped: bool
    cpu_attention: bool
    cpu_weights: bool
    staged: bool
    halves: bool = False
    amplification: float
    attention_flop_s: float
    product_flop_s: float = 0.0
    per_core: bool = False
    score_matrix: bool = False
    continuous: bool = False
    kv_on_gpu: bool = False
    chunk_tokens: int = 8192
    rereads: bool = True
    gpu_margin: float = 0.9
    host_margin: float = 0.9

    def on(self, cores: int) -> Runtime:
        """The runtime with its rates for a socket of `cores` cores."""
        if not self.per_core:
            return self
        attention, product = self.attention_flop_s * cores, self.product_flop_s * cores
        return replace(self, attention_flop_s=attention, product_flop_s=product, per_core=False)


FLEXGEN = Runtime(
    name="flexgen",
    about="weights are loaded, then the CPU attends, then the GPU computes; KV copies are staged",
    overlapped=False,
    cpu_attention=True,
    cpu_weights=False,
    staged=True,
    halves=True,
    # The two constants that reproduce the decode gains of the 2024 study of real CXL cards
    # (arXiv 2405.14209, figure 17) at a link of 20 GB/s: a least-squares fit to its three ratios.
    amplification=2.85,
    attention_flop_s=34.0e9,
    score_matrix=True,
    # The published model has one rate for decode's products, and the two constants were fitted with it.
    rereads=False,
    gpu_margin=0.8,
    host_margin=0.8,
)
"""FlexGen (arXiv 2303.06865) with its CPU attention, and the margins of its cost model."""

OVERLAPPED = Runtime(
    name="overlapped",
    about="weight loads, CPU attention and the GPU overlap; KV is pinned and attended to in 16 bits",
    overlapped=True,
    cpu_attention=True,
    cpu_weights=False,
    staged=False,
    amplification=1.0,
    # Assumed: half of what AVX2 reaches in fp32, 8 lanes x 2 operations x 2.5 GHz.
    attention_flop_s=20e9,
    per_core=True,
)
"""NEO (arXiv 2411.01142) and MoE-Lightning (arXiv 2411.11217): everything at the same time."""

COPIED = replace(
    OVERLAPPED,
    name="copied",
    about="weights and the KV cache are copied to the GPU when they are needed, behind the GPU's work",
    cpu_attention=False,
)
"""DeepSpeed's way of offloading: the CPU holds data and computes nothing."""

PAGED = replace(
    COPIED,
    name="paged",
    about="the KV cache of users in flight stays on the GPU; weights that do not fit are copied in every step",
    continuous=True,
    kv_on_gpu=True,
)
"""vLLM (arXiv 2309.06180) and SGLang; 8192 tokens are vLLM's own chunk on a large GPU."""

RESIDENT = Runtime(
    name="resident",
    about="the CPU multiplies with the weights that lie in host memory; nothing overlaps in decode",
    overlapped=False,
    cpu_attention=True,
    cpu_weights=True,
    staged=False,
    amplification=1.0,
    attention_flop_s=20e9,
    # Assumed: as attention; AVX-512 or AMX kernels reach several times that.
    product_flop_s=20e9,
    per_core=True,
    continuous=True,
    # What the exported command lines ask for: llama.cpp's own 512 would copy the weights eight times as often.
    chunk_tokens=4096,
)
"""llama.cpp and KTransformers: weights outside the GPU are computed on by the CPU."""

RUNTIMES = {runtime.name: runtime for runtime in (FLEXGEN, OVERLAPPED, COPIED, PAGED, RESIDENT)}


def runtime_of(name: str) -> Runtime:
    """A runtime by its name.

    Raises:
        RequestError: There is none of that name.
    """
    if name not in RUNTIMES:
        message = f"there is no runtime `{name}`\nhint: there are {', '.join(RUNTIMES)}"
        raise RequestError(message)
    return RUNTIMES[name]
