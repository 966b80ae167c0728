"""What FlexGen took on an H200, and what our model of its execution says of the same placements.

``python tests/offload/flexgen_runs.py`` prints the table of docs/offload.md. None of it is fitted to these runs: the
link is what the kernels of `expand calibrate` measured there, the host what a few loads and copies of it take.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from tierloom.offload.catalog import load_gpu, load_model
from tierloom.offload.host import Host, Tier
from tierloom.offload.model import Model
from tierloom.offload.placement import Placement
from tierloom.offload.problem import GPU, Problem
from tierloom.offload.runtime import FLEXGEN
from tierloom.offload.step_times import Steps, steps

KEPT = json.loads((Path(__file__).parent / "flexgen_h200.json").read_text())


def both() -> Iterator[tuple[dict[str, Any], Steps]]:
    """Each run, and ours."""
    models, host = {name: model_of(config) for name, config in KEPT["models"].items()}, host_of_the_runs()
    for run in KEPT["runs"]:
        problem = Problem(
            model=models[run["model"]],
            gpu=load_gpu("h200"),
            host=host,
            runtime=replace(FLEXGEN, cpu_attention=run["cache"] != "copied"),
            prompt=run["prompt"],
            generate=run["answer"],
        )
        yield run, steps(problem, placement(problem, run))


def model_of(config: dict[str, Any]) -> Model:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "config.json").write_text(json.dumps(config))
        return load_model(str(Path(folder) / "config.json"))


def host_of_the_runs() -> Host:
    seen = KEPT["host"]
    dram = Tier(
        name="dram",
        kind="dram",
        capacity_bytes=125 * 2.0**30,
        read_bytes_s=seen["read_gb_s"] * 1e9,
        write_bytes_s=seen["copy_gb_s"] * 1e9,
        idle_s=seen["idle_ns"] * 1e-9,
    )
    lines = seen["copy_one_gb_s"] * seen["idle_ns"] / 64  # of one thread that copies
    return Host(name="h200", socket="s0", cores=seen["cores"], lines=lines, tiers=(dram,), nodes=("dram",))


def placement(problem: Problem, run: dict[str, Any]) -> Placement:
    def at(size: float, where: str) -> dict[str, float]:
        return {GPU: size} if where == "gpu" else {"dram": size}

    batch = run["gpu_batch"] * run["gpu_batches"]
    return Placement(
        batch=batch,
        gpu_batch=run["gpu_batch"],
        weights={part.name: at(part.bytes, run["weights"]) for part in problem.model.parts},
        kv=at(batch * problem.kv_bytes, run["cache"]),
        hidden=at(batch * problem.hidden_bytes, run["hidden"]),
    )


def table() -> Iterator[str]:
    yield "| model | prompt | sequences | weights | KV cache | hidden states | prefill: ran, ours | step: ran, ours |"
    yield "|---|---:|---:|---|---|---|---|---|"
    for run, ours in both():
        told = [
            f"{ran:.2f} s, {made:.2f} s ({made / ran * 100 - 100:+.0f} %)"
            for ran, made in ((run["prefill_s"], ours.prefill_s), (run["step_s"], ours.decode_s))
        ]
        names = [{"gpu": "GPU"}.get(run[key], run[key]) for key in ("weights", "cache", "hidden")]
        what = (run["model"].upper(), str(run["prompt"]), str(run["gpu_batch"] * run["gpu_batches"]))
        yield f"| {' | '.join((*what, *names, *told))} |"


if __name__ == "__main__":
    sys.stdout.write("\n".join(table()) + "\n")
