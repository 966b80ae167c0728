"""What other tools make of `--emit`, read as they read it: the bytes that each device gets are the plan's."""

from __future__ import annotations

import os
import shlex
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest
import yaml
from tensor_overrides import PLANS, on_gpu, tensors

import tierloom
from tierloom import offload
from tierloom.offload.answers import InferAnswer
from tierloom.offload.exporters import emit

OVERRIDES = r"""
#include <iostream>
#include <regex>
#include <string>
#include <vector>

// Arguments are values of -ot: PATTERN=BUFFER, several of them with commas between. Names come on stdin; those that a
// pattern is found in are printed, as a tensor goes where the first one says.
int main(int argc, char **argv) {
    std::vector<std::regex> patterns;
    for (int at = 1; at < argc; at++) {
        std::string rest = argv[at];
        while (!rest.empty()) {
            const auto end = rest.find(',');
            const auto value = rest.substr(0, end);
            rest = end == std::string::npos ? "" : rest.substr(end + 1);
            const auto equals = value.find('=');
            if (equals == std::string::npos || value.substr(equals + 1) != "CPU") return 2;
            patterns.emplace_back(value.substr(0, equals));
        }
    }
    for (std::string name; std::getline(std::cin, name);)
        for (const auto &pattern : patterns)
            if (std::regex_search(name, pattern)) {
                std::cout << name << "\n";
                break;
            }
}
"""
"""How llama.cpp reads ``-ot``: `parse_tensor_buffer_overrides` of `common/arg.cpp`, and its loader of models."""

PRINTS = '#!/bin/sh\nprintf "%s\\n" "$@"\n'
STARTS = '#!/bin/sh\nwhile case "$1" in -*) true;; *) false;; esac; do shift; done\nexec "$@"\n'
"""Stand-ins for llama-server and for numactl, found in front of those that are installed."""


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program above, compiled."""
    folder = tmp_path_factory.mktemp("overrides")
    (folder / "overrides.cpp").write_text(OVERRIDES)
    subprocess.run(["g++", "-std=c++17", "-O1", "-o", folder / "overrides", folder / "overrides.cpp"], check=True)
    for name, text in (("llama-server", PRINTS), ("numactl", STARTS)):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    return folder


@pytest.mark.needs("g++")
@pytest.mark.parametrize(("model", "gpu", "machine", "bits"), PLANS)
def test_a_shell_and_std_regex_leave_on_the_gpu_what_the_plan_has_there(
    reader: Path, model: str, gpu: str, machine: str, bits: float | None
) -> None:
    asked = {"runtime": "resident", "batch": 1, "prompt": 4096, "compare": ()}
    answer = offload.infer(model, gpu, machine, weight_bits=bits, **asked)
    (reader / "line.sh").write_text(emit("llama.cpp", answer))
    environment = {**os.environ, "PATH": f"{reader}:{os.environ['PATH']}"}
    told = subprocess.run(["sh", reader / "line.sh"], env=environment, capture_output=True, text=True, check=True)
    given = [word for before, word in pairwise(told.stdout.splitlines()) if before == "-ot"]
    parts = answer.plan.problem.model.parts
    sizes = {name: size for part in parts for name, size in tensors(part)}
    found = subprocess.run(
        [reader / "overrides", *given], input="\n".join(sizes), capture_output=True, text=True, check=True
    )
    moved = set(found.stdout.splitlines())
    stays = sum(size for name, size in sizes.items() if name not in moved)
    assert stays == pytest.approx(sum(on_gpu(answer, part) for part in parts))
    assert stays <= answer.whole.plan.placement.weights_by_place["gpu"] * 1.001
    assert moved, "these do not fit"


@pytest.fixture(scope="module")
def dense() -> InferAnswer:
    return offload.infer("opt-66b", "a10", "liu-a-llm", compare=(), throughput=True)


def test_flexgen_puts_the_plans_bytes_on_the_gpu_to_a_per_cent(dense: InferAnswer) -> None:
    line = shlex.split(emit("flexgen", dense), comments=True)
    percents = list(map(int, line[line.index("--percent") + 1 :][:6]))
    placed = dense.plan.placement
    for at, shares in enumerate((placed.weights_by_place, placed.kv, placed.hidden)):
        planned = 100 * shares.get("gpu", 0.0) / sum(shares.values())
        assert planned - 1 < percents[2 * at] <= planned + 1e-6


@pytest.mark.parametrize("model", ["qwen3-30b-a3b", "mixtral-8x7b", "deepseek-v3"])
def test_ktransformers_keeps_the_plans_experts_to_one_a_layer(model: str) -> None:
    answer = offload.infer(model, "a10", "liu-a-llm", compare=(), weight_bits=4.5, runtime="resident", batch=1)
    line = shlex.split(emit("ktransformers", answer), comments=True)
    experts = next(part for part in answer.plan.problem.model.parts if part.name == "experts")
    one = experts.bytes / (experts.layers * answer.plan.problem.model.experts)
    kept = int(line[line.index("--gpu-experts") + 1]) * experts.layers * one
    planned = answer.whole.plan.placement.weights["experts"]["gpu"]
    assert planned - experts.layers * one - one <= kept <= planned * 1.001


@pytest.mark.parametrize("nodes", [None, ["ldram", "cxl"]])
def test_lmcache_reads_yaml_with_the_plans_cache(nodes: list[str] | None) -> None:
    answer = offload.infer("opt-66b", "a10", "liu-a-llm", compare=(), throughput=True, nodes=nodes)
    said = yaml.safe_load(emit("lmcache", answer))
    kv = answer.whole.plan.placement.kv
    outside = sum(amount for place, amount in kv.items() if place != "gpu")
    told = said.get("max_local_cpu_size", 0.0) + said.get("max_local_disk_size", 0.0)
    assert told == pytest.approx(outside / 2**30, abs=0.1)
    assert said["local_cpu"] is (said.get("max_local_cpu_size", 0.0) > 0)


@pytest.mark.parametrize("model", ["opt-66b", "llama-3.1-70b", "qwen3-30b-a3b"])
def test_our_own_plan_holds_the_plans_bytes_by_node(model: str) -> None:
    answer = offload.infer(model, "a10", "liu-a-llm", compare=(), throughput=True)
    plan = tierloom.Plan(emit("tierloom-plan", answer)).data
    placement, held = answer.whole.plan.placement, dict.fromkeys(plan["nodes"], 0.0)
    outside = {**placement.weights, "KV cache": placement.kv}
    for rule in plan["rules"]:
        names = [name for name in outside if name in rule["object"].split(" and ")]
        bytes_ = sum(amount for name in names for place, amount in outside[name].items() if place != "gpu")
        pages = rule["place"].get("weighted") or {rule["place"]["bind"][0]: 1}
        for node, count in pages.items():
            held[node] += bytes_ * count / sum(pages.values())
    # No rule can select hidden states by their size, which is that of no tensor: they stay with first touch.
    total = sum(plan["predicted"]["bytes"])
    for node, planned in zip(plan["nodes"], plan["predicted"]["bytes"], strict=True):
        assert held[node] == pytest.approx(planned - placement.hidden.get(node, 0.0), abs=0.03 * total), node
