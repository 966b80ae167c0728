"""Spelling and grammar of the documents."""

from __future__ import annotations

import json
import subprocess

import node_packages
import pytest
from support import ROOT

WORDS = ROOT / "tools" / "node" / "words.txt"
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("crates/*/README.md")])

pytestmark = [pytest.mark.long, pytest.mark.needs("node", "npm")]


def found(*files: str) -> list[dict[str, object]]:
    """What is wrong in files."""
    folder = node_packages.installed()
    told = subprocess.run(["node", "prose.mjs", WORDS, *files], cwd=folder, check=True, capture_output=True, text=True)
    return [json.loads(line) for line in told.stdout.splitlines()]


def test_spelling_and_grammar_are_right() -> None:
    wrong = [f"{each['file']}:{each['line']}: `{each['text']}`: {each['says']}" for each in found(*map(str, DOCUMENTS))]
    assert not wrong, "\n".join(wrong)


def test_what_is_wrong_is_found() -> None:
    page = ROOT / "build" / "node" / "wrong.md"
    node_packages.installed()
    page.write_text("It is is an list of recieved bytes. We goes on.\n")
    assert {str(each["rule"]) for each in found(str(page))} >= {
        "RepeatedWords",
        "AnA",
        "SpellCheck",
        "PronounVerbAgreement",
    }


def test_words_of_ours_are_sorted_and_needed() -> None:
    words = WORDS.read_text(encoding="utf-8").splitlines()[1:]
    assert words == sorted(set(words))
    text = "\n".join(path.read_text(encoding="utf-8") for path in DOCUMENTS)
    assert [word for word in words if word not in text] == []
