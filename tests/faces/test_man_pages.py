"""Manual pages say what `--help` says, in roff that its reader takes without a word."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import click
import pytest
from support import ROOT

from tierloom.commands import main


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("man_pages", ROOT / "tools" / "man_pages.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["man_pages"] = module
    spec.loader.exec_module(module)
    return module


def test_every_verb_has_a_page_with_all_of_its_options_and_examples(tool: ModuleType, tmp_path: Path) -> None:
    written = {path.stem: path.read_text().replace("\\-", "-") for path in tool.write(tmp_path)}
    assert {"tierloom", "tierloom-plan", "tierloom-machine-show"} <= written.keys()
    for name, context in tool.commands():
        text = written[name]
        flags = [flag for each in context.command.params if isinstance(each, click.Option) for flag in each.opts]
        assert all(flag in text for flag in flags), name
        told = (context.command.epilog or "").count("$ ")
        assert text.count("\n$ ") == told or name == "tierloom"
    for verb in main.list_commands(click.Context(main)):
        assert f"tierloom-{verb} (1)" in written["tierloom"]


def test_text_cannot_become_a_request(tool: ModuleType) -> None:
    assert tool.escaped(".SH no\n'so \\fB -x") == "\\&.SH no\n\\&'so \\efB \\-x"


@pytest.mark.needs("groff")
def test_groff_takes_every_page_without_a_warning(tool: ModuleType, tmp_path: Path) -> None:
    pages = tool.write(tmp_path)
    done = subprocess.run(
        ["groff", "-man", "-Tutf8", "-ww", "-Wbreak", "-z", *pages], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
