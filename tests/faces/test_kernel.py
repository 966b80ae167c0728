"""Notebooks in a real kernel: cells of the Python page and of the examples run there, and what ends a cell is shown."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook
from pages import blocks_of
from support import ROOT

from tierloom.report.notebook import LITE

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture(autouse=True)
def nobody(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Kernels and settings of whoever runs the tests are not looked at."""
    for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(tmp_path_factory.mktemp(name.lower())))


def executed(cells: list[str], folder: Path) -> list[list[nbformat.NotebookNode]]:
    """Outputs of each cell; an exception in one of them is an error."""
    notebook = new_notebook(cells=[new_code_cell(cell) for cell in cells])
    client = NotebookClient(notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(folder)}})
    return [cell.outputs for cell in client.execute().cells]


def shown(outputs: list[nbformat.NotebookNode]) -> dict[str, Any]:
    """What a notebook has of the value that ends a cell, by type."""
    (result,) = [each for each in outputs if each.output_type == "execute_result"]
    return result.data


def test_the_cells_of_the_python_page_run(folder: Path) -> None:
    outputs = executed(blocks_of(ROOT / "docs" / "python.md", "python"), folder)
    assert len(outputs) > 2
    assert all(cell for cell in outputs), "each prints something"


def test_what_ends_a_cell_is_a_table_or_a_chart(folder: Path) -> None:
    cells = [
        "import tierloom",
        "tierloom.machine('liu-a')",
        "answer = tierloom.plan('mg-e', 'liu-a', threads=32, fast_memory='64GiB'); answer",
        "answer.charts()['Time by policy']",
    ]
    _, machine, answer, chart = (shown(outputs) if outputs else {} for outputs in executed(cells, folder))
    for each in (machine, answer):
        assert "<table" in each["text/html"]
        assert each["text/plain"]
    assert chart[LITE]["data"]
    assert "text/html" not in chart


def test_a_progress_bar_moves_and_goes(folder: Path) -> None:
    cell = "import tierloom; tierloom.sweep('cxl-share', 'x.sweep', workers=0).counts['done']"
    (outputs,) = executed([cell], folder)
    assert shown(outputs)["text/plain"] == "78"
    (bar,) = [each for each in outputs if each.output_type == "display_data"]
    assert bar.data["text/html"] == "", "it has gone"


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("which_machine", "bytedance-spr-a1000"),
        ("how_much_dram", "32 threads: "),
        pytest.param("own_program", "waits", marks=pytest.mark.live),
    ],
)
def test_an_example_opens_as_a_notebook(name: str, told: str, folder: Path) -> None:
    text = (ROOT / "examples" / f"{name}.py").read_text(encoding="utf-8")
    parts = re.split(r"^# %%(.*)\n", text, flags=re.MULTILINE)[1:]
    cells = [cell for kind, cell in zip(parts[::2], parts[1::2], strict=True) if "markdown" not in kind]
    outputs = executed(cells, folder)
    assert told in "".join(each.text for cell in outputs for each in cell if each.output_type == "stream")
    if name == "how_much_dram":
        assert shown(outputs[-1])[LITE]["data"]
