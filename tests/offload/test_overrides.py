"""What ``-ot`` of llama.cpp leaves on the GPU, tensor by tensor, is what the plan has there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tensor_overrides import PLANS, on_gpu, patterns

from tierloom import offload
from tierloom.errors import RequestError
from tierloom.offload.exporters import emit
from tierloom.offload.exporters.tensor_overrides import PATTERNS, pieces
from tierloom.offload.gguf_tensors import _place


@pytest.mark.parametrize(("model", "gpu", "machine", "bits"), PLANS)
def test_the_patterns_leave_on_the_gpu_what_the_plan_has_there(
    model: str, gpu: str, machine: str, bits: float | None
) -> None:
    asked = {"runtime": "resident", "batch": 1, "prompt": 4096, "compare": ()}
    answer = offload.infer(model, gpu, machine, weight_bits=bits, **asked)
    parts, placed = answer.plan.problem.model.parts, answer.whole.plan.placement
    stays = sum(on_gpu(answer, part) for part in parts)
    planned = placed.weights_by_place["gpu"]
    grain = max(piece.bytes for part in parts if part.name in PATTERNS for piece in pieces(part))
    assert planned - 1.01 * grain <= stays <= planned * 1.001


def test_the_layers_are_the_models_own() -> None:
    answer = offload.infer(
        "deepseek-v3", "rtx-4090", "liu-a", weight_bits=4.85, runtime="resident", batch=1, prompt=4096, compare=()
    )
    whole = next(pattern for pattern in patterns(answer) if "|" in pattern)
    assert whole.split(")")[0].endswith("|58|59|60")
    (experts,) = (part for part in answer.plan.problem.model.parts if part.name == "experts")
    assert {piece.layer for piece in pieces(experts)} == set(range(3, 61))
    assert "whole tensors:" in emit("llama.cpp", answer)


def test_every_tensor_of_a_layer_has_the_pattern_of_its_part() -> None:
    from gguf.constants import TENSOR_NAMES

    names = {name.format(bid=3) for name in TENSOR_NAMES.values() if name.startswith("blk.")}
    others = ("nextn", "vis_")
    for name in sorted(names):
        if not name.split(".")[2].startswith(others):
            part, _ = _place(f"{name}.weight", 8, tied=False)
            matching = [each for each, found in PATTERNS.items() if re.match(rf"blk\.3\.{found}", f"{name}.weight")]
            assert matching == [part], name


def hybrid(folder: Path, family: str, ahead: int = 0) -> Path:
    """A GGUF file with attention, a state and experts in different layers, under any architecture's name."""
    import gguf
    import numpy as np

    writer = gguf.GGUFWriter(folder / "tiny.gguf", family)
    keys = {"block_count": 6, "embedding_length": 4096, "feed_forward_length": 4096, "attention.head_count": 32}
    keys |= {"attention.head_count_kv": [0, 8, 0] * 2, "expert_count": 32, "expert_used_count": 2}
    keys |= {"ssm.inner_size": 512, "ssm.state_size": 128, "ssm.conv_kernel": 4, "nextn_predict_layers": ahead}
    for key, value in keys.items():
        add = writer.add_array if isinstance(value, list) else writer.add_uint32
        add(f"{family}.{key}", value)
    shapes = {"token_embd": (1000, 4096), "output": (1000, 4096)}
    for layer in (0, 3):
        shapes[f"blk.{layer}.ssm_in"] = (4096, 4096)
    for layer in (1, 4):
        shapes[f"blk.{layer}.attn_q"] = (4096, 4096)
    for layer in (2, 5):
        shapes |= {f"blk.{layer}.ffn_{kind}_exps": (32, 4096 * layer, 4096) for kind in ("up", "down")}
    for name, shape in shapes.items():
        size = 2 * int(np.prod(shape, dtype=np.int64))
        writer.add_tensor_info(f"{name}.weight", shape, np.dtype(np.float16), size)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    writer.close()
    whole = sum(2 * int(np.prod(shape, dtype=np.int64)) for shape in shapes.values())
    with (folder / "tiny.gguf").open("r+b") as file:
        file.truncate(file.seek(0, 2) + whole + 64)
    return folder / "tiny.gguf"


@pytest.mark.parametrize("family", ["glm4moe", "gemma3", "llama4", "qwen3next", "nemotron_h_moe", "gemma3n", "newest"])
def test_a_gguf_file_has_the_names_whatever_its_architecture(tmp_path: Path, family: str) -> None:
    file = hybrid(tmp_path, family)
    answer = offload.infer(str(file), "rtx-4090", "liu-a", runtime="resident", batch=1, prompt=4096, compare=())
    assert answer.choice.tool == "llama.cpp"
    experts = next(part for part in answer.plan.problem.model.parts if part.name == "experts")
    assert [(piece.layer, piece.tensor) for piece in pieces(experts)] == [
        (layer, f"ffn_{kind}_exps.weight") for layer in (2, 5) for kind in ("up", "down")
    ]
    planned = answer.whole.plan.placement.weights["experts"]["gpu"]
    assert planned - 32 * 2 * 4096**2 * 5 <= on_gpu(answer, experts) <= planned * 1.001


def test_layers_that_predict_ahead_take_no_room_on_the_gpu(tmp_path: Path) -> None:
    file = hybrid(tmp_path, "glm4moe", ahead=1)
    answer = offload.infer(str(file), "rtx-4090", "liu-a", runtime="resident", batch=1, prompt=4096, compare=())
    assert answer.plan.problem.model.layers == 5
    draft = answer.plan.problem.model.draft
    moved = [re.compile(pattern) for pattern in patterns(answer)]
    assert draft
    assert all(any(each.search(tensor.name) for each in moved) for tensor in draft.named)


def test_a_config_whose_tensors_have_no_known_names_says_so() -> None:
    answer = offload.infer("opt-30b", "a10", "liu-a-llm", runtime="resident", batch=1, compare=())
    with pytest.raises(RequestError, match=r"we do not know .* of 'opt'\nhint: give its GGUF file"):
        emit("llama.cpp", answer)
