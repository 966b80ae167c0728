"""A real decode loop under a plan of ours: every tensor is found by its size, and lies where the plan says.

The loop runs on PyTorch where that is installed, else on NumPy; sizes are small, the way is the whole one.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from support import ROOT

from tierloom import lab, offload
from tierloom.errors import LabError
from tierloom.offload.exporters import emit

EXAMPLE = ROOT / "examples" / "offload"
LAYERS, HIDDEN, FFN, BATCH = 4, 512, 1408, 8


def planned(folder: Path, policy: str) -> list[str]:
    """Writes the plan of a policy into a folder; returns the program that it is for."""
    config = json.loads((EXAMPLE / "tiny" / "config.json").read_text())
    config |= {"num_hidden_layers": LAYERS, "hidden_size": HIDDEN, "intermediate_size": FFN}
    (folder / "config.json").write_text(json.dumps(config))
    gpu = (EXAMPLE / "staging.toml").read_text().replace("335544320", "100663296")
    (folder / "gpu.toml").write_text(gpu)
    answer = offload.infer(
        str(folder / "config.json"),
        str(folder / "gpu.toml"),
        str(EXAMPLE / "two-tier.toml"),
        prompt=960,
        generate=64,
        batch=BATCH,
        runtime="flexgen",
        policy=policy,
        compare=(),
    )
    assert answer.plan.placement.gpu_batch == 1
    (folder / "tiny.plan.toml").write_text(emit("tierloom-plan", answer))
    sizes = ["--layers", str(LAYERS), "--hidden", str(HIDDEN), "--ffn", str(FFN), "--gpu-batch", "1", "--steps", "1"]
    return [sys.executable, str(EXAMPLE / "decode_loop.py"), *sizes]


def placed(report: dict) -> dict[str, dict]:
    return {rule["object"]: rule for rule in report["rules"]}


def test_every_tensor_is_found_by_its_size(executable: Path, folder: Path) -> None:
    """On this machine the plan is rehearsed: both of its nodes are the one that there is."""
    loop = planned(folder, "prefer:far")
    command = [str(executable), "run", "--plan", "tiny.plan.toml", "--node", "far=0", "--json", "--", *loop]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rules = placed(json.loads(done.stdout))
    assert rules["KV cache"]["held"], rules
    assert rules["KV cache"]["ranges"] == LAYERS * BATCH
    assert rules["mlp"]["held"], rules
    assert rules["mlp"]["ranges"] >= 3 * LAYERS
    assert '"runs_on"' in done.stderr


@pytest.mark.lab
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.xdist_group("lab-offload")
def test_pages_lie_on_both_nodes_of_the_lab_as_planned(executable: Path, folder: Path) -> None:
    loop = planned(folder, "interleave")
    command = [str(executable), "run", "--plan", "tiny.plan.toml", "--json", "--", *loop]
    try:
        result = lab.run(command, topology="two-tier", timeout_s=800)
    except LabError as error:
        pytest.skip(str(error).replace("\n", "; "))
    cache = placed(json.loads(result.stdout))["KV cache"]
    assert cache["held"]
    assert cache["ranges"] == LAYERS * BATCH
    nodes = cache["residency"]["by_node"]
    share = nodes["1"] / (nodes["0"] + nodes["1"])
    assert share == pytest.approx(cache["asked"]["1"], abs=0.02)
    assert 0.4 < share < 0.6
