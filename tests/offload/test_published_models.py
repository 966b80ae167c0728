"""Seventy-seven ``config.json`` of models in wide use, read or refused by name, and the table of them in the documents.

`published_models.json` has for each the fields of its file that say sizes, as they are remembered, long lists of layers
shortened by a star; its parameters as transformers 5.24 counts them of the same fields, on PyTorch's meta device; the
bytes that a token keeps, by hand; and for some the size of the published checkpoint, as it is remembered.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from support import ROOT

from tierloom.errors import RequestError
from tierloom.offload.architectures import model_of
from tierloom.offload.model import Model

PUBLISHED: dict[str, dict[str, Any]] = json.loads((Path(__file__).parent / "published_models.json").read_text())
READ = [name for name, each in PUBLISHED.items() if "refused" not in each]
REFUSED = [name for name, each in PUBLISHED.items() if "refused" in each]
SIZED = [name for name, each in PUBLISHED.items() if "checkpoint_bytes" in each]

ROW = re.compile(
    r"^\| (?P<name>[^|]+?) \| (?P<parameters>[\d.]+) \| (?P<bytes>[\d.]+) \| (?P<kv>[\d,]+) \|", re.MULTILINE
)


def model(name: str) -> Model:
    return model_of(PUBLISHED[name]["config"], name)


@pytest.mark.parametrize("name", READ)
def test_parameters_are_those_that_another_library_counts(name: str) -> None:
    assert model(name).parameters == pytest.approx(PUBLISHED[name]["parameters"], rel=0.005)


@pytest.mark.parametrize("name", READ)
def test_a_token_keeps_what_its_layers_keep(name: str) -> None:
    assert model(name).kv_bytes_per_token == PUBLISHED[name]["kv_bytes"]


@pytest.mark.parametrize("name", SIZED)
def test_a_checkpoint_has_its_published_size(name: str) -> None:
    assert model(name).checkpoint_bytes == pytest.approx(PUBLISHED[name]["checkpoint_bytes"], rel=0.02)


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_counted_is_refused_by_name(name: str) -> None:
    kind = PUBLISHED[name]["config"]["model_type"]
    with pytest.raises(RequestError, match=f"`model_type` '{kind}' is not known.*(?s:.)*hint: give a GGUF file"):
        model(name)


def test_the_table_in_the_documents_is_what_is_read() -> None:
    text = (ROOT / "docs/offload.md").read_text(encoding="utf-8")
    rows = {row["name"]: row for row in ROW.finditer(text)}
    assert list(rows) == READ
    for name, row in rows.items():
        found = model(name)
        assert row["parameters"] == f"{found.parameters / 1e9:.2f}", name
        assert row["bytes"] == f"{found.checkpoint_bytes / 1e9:.2f}", name
        assert row["kv"] == f"{found.kv_bytes_per_token:,.0f}", name
    assert all(f"`{PUBLISHED[name]['config']['model_type']}`" in text for name in REFUSED)
