"""Models, GPUs and hosts that these tests share."""

from __future__ import annotations

from dataclasses import replace

import pytest

import tierloom
from tierloom.offload.catalog import load_gpu, load_model
from tierloom.offload.gpu import Gpu
from tierloom.offload.host import Host, host_of
from tierloom.offload.problem import Problem
from tierloom.offload.runtime import FLEXGEN


@pytest.fixture(scope="session")
def liu_a() -> Host:
    return host_of(tierloom.Machine.load("liu-a-llm"))


@pytest.fixture(scope="session")
def a10() -> Gpu:
    return load_gpu("a10")


@pytest.fixture
def problem(liu_a: Host, a10: Gpu) -> Problem:
    """OPT-66B as the study asked it, at the link that its fit took."""
    linked = replace(a10, in_gb_s=20.0, out_gb_s=20.0)
    return Problem(model=load_model("opt-66b"), gpu=linked, host=liu_a, runtime=FLEXGEN, prompt=2048, generate=256)
