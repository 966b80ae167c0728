"""Spelling and grammar of the documents, by Harper: no server, no network, and British English."""

from __future__ import annotations

import re
from pathlib import Path

import harper
import pytest
from support import ROOT

WORDS = ROOT / "tests" / "words.txt"
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("crates/*/README.md")])

OTHERWISE = {
    # Headings are sentences; cells of tables and names of commands begin with small letters; commas where they help.
    *("UseTitleCase", "SentenceCapitalization", "OxfordComma", "NoOxfordComma", "LongSentences", "Spaces"),
    # Units are units, and programs are called what their authors call them.
    *("ExpandMemoryShorthands", "ExpandTimeShorthands", "ExpandPerformance", "ExpandConfiguration", "ExpandControl"),
    *("ExpandStandardInputAndOutput", "NumericRangeEnDash", "UseEllipsisCharacter", "CompaniesProductsAndTrademarks"),
    *("SplitWords", "MergeWords", "TransposedSpace", "OrthographicConsistency", "CompoundNouns", "DisjointPrefixes"),
    "Overall",
    # These take words for other parts of speech: in sentences of ours that are right, and they had no others to name.
    *("QuantifierNumeralConflict", "OneOfTheSingular", "MassNouns", "PronounInflectionBe", "MissingPreposition"),
    *("SingleBe", "MissingTo", "ItsContraction", "InflectedVerbAfterTo", "AsHow", "TheyToThem", "ThatThan"),
    *("SimplePastToPastParticiple", "OutOfDate", "HowTo", "HavePronoun", "FindOut", "CondenseAllThe", "ToTwoToo"),
}
"""Rules that we write differently on purpose."""

NAME = re.compile(r"\d|_|^.(\.|'s)?$|^and$")
"""Names of parts and models, letters, and what is no words; of articles, those before such."""


@pytest.fixture(scope="module")
def linter() -> harper.Linter:
    """All of its rules, and our words."""
    made = harper.Linter(harper.Dialect.BRITISH)
    made.import_words([form for word in words() for form in (word, f"{word}'s")])
    return made


def words() -> list[str]:
    """What no dictionary knows; the first line says so."""
    return WORDS.read_text(encoding="utf-8").splitlines()[1:]


def found(text: str, linter: harper.Linter) -> list[tuple[str, str]]:
    """What is wrong in a text: the rule, and the line with what it says. Code and links are left out by the parser."""
    wrong = []
    for rule, lints in linter.organized_lints(text, language="markdown").items():
        for lint in lints if rule not in OTHERWISE else ():
            after = text[lint.span.end :].split(maxsplit=1)
            if not NAME.search(after[0] if rule == "AnA" and after else lint.problem_text):
                line = text.count("\n", 0, lint.span.start) + 1
                wrong.append((rule, f"line {line}: `{lint.problem_text}`: {lint.message}"))
    return wrong


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_spelling_and_grammar_are_right(document: Path, linter: harper.Linter) -> None:
    wrong = [says for _, says in found(document.read_text(encoding="utf-8"), linter)]
    assert not wrong, "\n".join([f"{document}:", *wrong])


def test_what_is_wrong_is_found(linter: harper.Linter) -> None:
    wrong = found("It is is an list of recieved bytes. We goes on.\n", linter)
    assert {rule for rule, _ in wrong} >= {"RepeatedWords", "AnA", "SpellCheck", "PronounVerbAgreement"}


def test_words_of_ours_are_sorted_and_needed() -> None:
    assert words() == sorted(set(words()))
    text = "\n".join(path.read_text(encoding="utf-8") for path in DOCUMENTS)
    assert [word for word in words() if word not in text] == []
