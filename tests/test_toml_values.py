"""Values in TOML that is put together line by line are read as they were written, whatever characters they have."""

from __future__ import annotations

import tomllib
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

import tierloom
from tierloom import offload
from tierloom.gpu_expansion import ParameterSet
from tierloom.gpu_measurement import fit, into_set, kept
from tierloom.offload.catalog import load_model
from tierloom.offload.exporters import emit
from tierloom.toml_values import toml_value

LLAMA = 'a "llama" \U0001f999 \\ \x7f'
"""A name with a character beyond U+FFFF, and what TOML wants escaped."""


@given(st.text() | st.lists(st.text()) | st.integers(-(2**63), 2**63 - 1) | st.booleans())
def test_what_is_written_is_read(value: str | list[str] | int) -> None:
    assert tomllib.loads(f"value = {toml_value(value)}")["value"] == value


def test_a_plan_has_the_name_of_its_model() -> None:
    model = replace(load_model("llama-3.1-8b"), name=LLAMA)
    answer = offload.infer(model, "a10", "liu-a-llm", users=4, compare=())
    assert tierloom.Plan(emit("tierloom-plan", answer)).data["profile"] == LLAMA


def test_a_parameter_set_has_the_name_of_its_gpu() -> None:
    found = replace(fit(kept("h100")), gpu=LLAMA)
    text = into_set(ParameterSet.load().text, found)
    assert tomllib.loads(text)["gpus"]["here"]["title"] == f"{LLAMA}, measured"
