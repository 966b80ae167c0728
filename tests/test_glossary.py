"""Every name that a table shows has an entry in the glossary."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from support import ROOT

GLOSSARY = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
ENTRIES = re.findall(r"^\| (.+?) \|", GLOSSARY, re.MULTILINE)
PLAIN = [entry.strip("`") for entry in ENTRIES]

MAKERS = ("crates/analysis/src/**/*.rs", "crates/perfdata/src/**/*.rs", "python/tierloom/report/tables/*.py")
"""Files whose texts name what belongs to no object of a name."""
NEVER_SHOWN = {"[vdso]", "[vsyscall]"}
"""Mappings of the kernel's code: samples there are `[kernel]`."""
TEXT = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
BRACKETS = re.compile(r"(?<![\w\])])\[(?:anon:(?:\{\} \{size\}\])?|[a-z][a-z -]*\])")
IN_WORDS = {"[anon:": "[anon:NAME]", "[anon:{} {size}]": "[anon:N SIZE]"}
"""Names with something of a program's own in them, as the glossary has them."""


def names() -> Iterator[str]:
    """Names in brackets, from the sources but their tests and comments."""
    for pattern in MAKERS:
        for path in sorted(ROOT.glob(pattern)):
            text = path.read_text(encoding="utf-8").split("#[cfg(test)]")[0]
            code = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith(("//", ">>>")))
            yield from (name for each in TEXT.findall(code) for name in BRACKETS.findall(each))


def test_every_name_in_brackets_has_an_entry_and_no_other() -> None:
    shown = {f"`{IN_WORDS.get(name, name)}`" for name in names() if name not in NEVER_SHOWN}
    assert "`[unrecovered]`" in shown
    assert {entry for entry in ENTRIES if entry.startswith("`[")} == shown


def test_every_kind_and_pattern_of_an_object_has_an_entry() -> None:
    schemas = json.loads((ROOT / "python/tierloom/schema/documents.json").read_text(encoding="utf-8"))
    words = [each["const"] for name in ("ObjectKind", "Pattern") for each in schemas[name]["oneOf"]]
    assert "arena" in words
    assert [word for word in words if word not in PLAIN] == []


def test_words_are_in_order() -> None:
    words = [entry.lower() for entry in PLAIN if not entry.startswith("[") and entry not in {"word", "name"}]
    assert words == sorted(words)
