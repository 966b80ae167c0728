"""LMCache: its YAML configuration (lmcache 0.5); KV cache in host memory and on a block device."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tierloom.offload.exporters.common import process_policy
from tierloom.units import GIB

if TYPE_CHECKING:
    from tierloom.offload.answers import InferAnswer


def lmcache(answer: InferAnswer) -> str:
    """A configuration; sizes in GiB."""
    placement, host = answer.whole.plan.placement, answer.plan.problem.host
    memory = sum(placement.kv.get(tier.name, 0.0) for tier in host.memories)
    blocks = sum(placement.kv.get(tier.name, 0.0) for tier in host.tiers if tier.block)
    policy = process_policy(answer)
    lines = [*policy.notes, *([f"# start the server with: {policy.prefix.strip()}"] if policy.prefix else [])]
    lines += ["chunk_size: 256", f"local_cpu: {'true' if memory else 'false'}"]
    if memory:
        lines.append(f"max_local_cpu_size: {memory / GIB:.1f}")
    if blocks:
        lines += ["local_disk: file:///nvme/lmcache/", f"max_local_disk_size: {blocks / GIB:.1f}"]
    return "\n".join(lines) + "\n"
