"""Predicted against measured order of two placements, on this machine and without a GPU.

Two placements of the same small model: all weights are loaded in every step, or half of the layers stay
in the staging buffer. `decode_loop.py` measures both, several times in turn; the planner's clock predicts
both from rates that the first run measured alone (bytes a second of a load, of attention, of products).

    python examples/offload/order.py --python python3

`--python` names the interpreter that has PyTorch; without PyTorch the loop runs on NumPy.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from tierloom.offload.catalog import load_model
from tierloom.offload.gpu import Gpu
from tierloom.offload.host import Host, Tier
from tierloom.offload.placement import Placement
from tierloom.offload.problem import GPU, Problem
from tierloom.offload.runtime import FLEXGEN
from tierloom.offload.step_times import steps

HERE = Path(__file__).parent
TOKENS, BATCH = 1024, 8


def measured(python: str, resident: int, repeats: int) -> dict:
    """The quickest of some runs of the loop."""
    command = [python, str(HERE / "decode_loop.py"), "--resident", str(resident), "--tokens", str(TOKENS)]
    runs = [json.loads(subprocess.run(command, capture_output=True, check=True).stdout) for _ in range(repeats)]
    return min(runs, key=lambda run: run["seconds"]["step"])


def problem_from(run: dict) -> Problem:
    """This machine as the first run shows it: one tier, and rates of loads, attention and products."""
    seconds, model = run["seconds"], load_model(str(HERE / "tiny"))
    load = run["weight_bytes"] / seconds["load"]
    attention = run["kv_bytes"] / seconds["attention"]
    flop = BATCH * 2.0 * run["weight_bytes"] / 4.0
    tier = Tier(
        name="here",
        kind="dram",
        capacity_bytes=2.0**36,
        read_bytes_s=1e12,
        write_bytes_s=1e12,
        idle_s=1e-9,
    )
    host = Host(name="here", socket="s", cores=1, lines=1e6, tiers=(tier,), nodes=("here",))
    gpu = Gpu(
        name="staging",
        memory_bytes=2.0**36,
        memory_gb_s=1e6,
        tflop_s=flop / seconds["products"] / 1e12,
        in_gb_s=load / 1e9,
        out_gb_s=load / 1e9,
        copy_ns=1.0,
        prefill_efficiency=1.0,
        decode_efficiency=1.0,
    )
    # Attention's measured rate counts all of it: nothing is left to the tiers' bandwidth.
    rate = attention * model.attention_flop(TOKENS) / model.read_bytes(TOKENS)
    runtime = replace(FLEXGEN, staged=False, amplification=0.0, attention_flop_s=rate)
    return Problem(model=model, gpu=gpu, host=host, runtime=runtime, prompt=TOKENS - 1, generate=1, batch=BATCH)


def predicted(problem: Problem, resident_share: float) -> float:
    """A decode step by the planner's clock, s."""
    model = problem.model
    weights = {}
    for part in model.parts:
        outside = part.name in {"head", "embedding"}
        kept = part.bytes if outside else resident_share * part.bytes
        weights[part.name] = {GPU: kept, "here": part.bytes - kept}
    kv, hidden = BATCH * problem.kv_bytes, BATCH * problem.hidden_bytes
    placement = Placement(batch=BATCH, gpu_batch=BATCH, weights=weights, kv={"here": kv}, hidden={GPU: hidden})
    return steps(problem, placement).decode_s


def main() -> None:
    """Measures both placements, predicts both, and says whether the order agrees."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    all_loaded, half_kept = (measured(options.python, resident, options.repeats) for resident in (0, 4))
    problem = problem_from(all_loaded)
    rows = {
        "all weights loaded": (predicted(problem, 0.0), all_loaded["seconds"]["step"]),
        "half of the layers kept": (predicted(problem, 0.5), half_kept["seconds"]["step"]),
    }
    for name, (said, was) in rows.items():
        print(f"{name:24} predicted {said * 1e3:7.1f} ms  measured {was * 1e3:7.1f} ms")
    (first, first_was), (second, second_was) = rows.values()
    same = (first > second) == (first_was > second_was)
    print(f"the order {'agrees' if same else 'DIFFERS'}; runs on {all_loaded['runs_on']}")
    sys.exit(0 if same else 1)


if __name__ == "__main__":
    main()
