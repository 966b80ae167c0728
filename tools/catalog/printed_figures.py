"""Every number that a paper prints, by section: what the ledger of claims has to account for.

usage: printed_figures.py TEXT-FOLDER [STUDY …]

Reads the text of each study (``liu24.txt`` …), leaves out references, citations and the numbers of sections,
figures and tables, and writes ``tests/published_claims/printed/STUDY.txt``: a line a section, its heading before a
tabulator, its numbers behind. The texts themselves are not ours to keep; numbers are facts.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

WHERE = Path(__file__).resolve().parents[2] / "tests" / "published_claims" / "printed"

HEADINGS = {
    "liu24": (r"\d(?:\.\d)*\. [A-Z][^.]{3,70}$", r"Abstract\.$", r"Table \d\. ", r"Takeaway"),
    "micron24": (r"#+ +.+$", r"\*\*[^*]+\*\*$", r"\*[A-Z][^*]+\*$", r"(?:System Details|Table I)\b.*$"),
    "bytedance24": (
        r"(?:Background|Motivation|Experimental|Performance Char|Key Obs|Exploring Pot)[^.\t]*$",
        r"(?:Use Case|Insights|Challenges|Conclusion|Maximum)[^.\t]*$",
    ),
    "fridman23": (
        r"(?:Talk Outline|What are the|Persistent Memory for|CXL (?:Disagg|as Pers)|Physical Exp)",
        r"(?:Performance Ev|Conclusions|STREAM Bench|STREAM-PMem Bench|\d\.[abc]\. .*|5 Test Groups.*)",
    ),
    "cxlgpu25": (r"[A-Z][A-Z a-zA-Z]{9,60}$", r"(?:Abstract|EVALUATION|CONCLUSION)$", r"(?:Meth|Conf|Work)[a-z]+\. "),
}
ENDS = {"liu24": "\nReferences\n", "micron24": "\n## References", "cxlgpu25": "\nREFERENCES\n"}

NOISE = (
    r"\([^()]*?(?:\d{4}[a-z]?|n\. d\.)[^()]*\)",  # (Maruf et al., 2023)
    r"(?:[Ff]ig(?:ure|\.|s\.)?|[Tt]able|[Ss]ections?|§) ?\d+(?:\.\d+)*(?:[-\u2013]\d+)?\.?(?:\(\w\)|[a-e]\b)?",
    r"https?://\S+",
    r"(?<=\d)percent\d[\d.\\%]*",  # 48%percent4848\% of a converted formula
    r"\\mu.*? italic_s",
)
NUMBER = re.compile(r"(?<![\w.])(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?![\d])")


def figures(text: str) -> list[str]:
    """Numbers of a text in their order, each once."""
    for pattern in NOISE:
        text = re.sub(pattern, " ", text)
    text = re.sub(r"(?<=\d)[\u00d7x]\S*", "x ", text)
    return list(dict.fromkeys(NUMBER.findall(text)))


def sections(study: str, text: str) -> dict[str, list[str]]:
    """Headings with the numbers below them."""
    body = text.partition(ENDS.get(study, "\0"))[0]
    heading, found = "Title", dict[str, list[str]]()
    for line in body.splitlines():
        if any(re.match(pattern, line.strip()) for pattern in HEADINGS[study]):
            heading = re.sub(r"[*#]", "", line).strip()[:70]
        found.setdefault(heading, []).extend(figures(line))
    return {name: list(dict.fromkeys(numbers)) for name, numbers in found.items() if numbers}


def main() -> None:
    """Writes the lists of the studies that are asked for."""
    folder, asked = Path(sys.argv[1]), sys.argv[2:] or list(HEADINGS)
    WHERE.mkdir(exist_ok=True)
    for study in asked:
        listed = sections(study, (folder / f"{study}.txt").read_text(encoding="utf-8"))
        lines = [f"{heading}\t{' '.join(numbers)}\n" for heading, numbers in listed.items()]
        (WHERE / f"{study}.txt").write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
