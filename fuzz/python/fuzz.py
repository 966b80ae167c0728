"""Feeds one of the Python readers with bytes that Atheris makes up from its corpus, by what they reach.

    python fuzz/python/fuzz.py TARGET [options of libFuzzer…]

Inputs that find something new go to `fuzz/found/TARGET`; what breaks the law to `fuzz/artifacts/TARGET`.
"""

from __future__ import annotations

import sys
import warnings

import atheris

with atheris.instrument_imports(include=["tierloom", "gguf"]):
    from readers import CORPUS, TARGETS


def main() -> None:
    """Runs until an option of libFuzzer says that it is enough."""
    _, target, *options = sys.argv
    warnings.simplefilter("ignore")
    found, broken = (CORPUS.parent / kind / target for kind in ("found", "artifacts"))
    for folder in (found, broken):
        folder.mkdir(parents=True, exist_ok=True)
    words = [sys.argv[0], f"-artifact_prefix={broken}/", *options, str(found), str(CORPUS / target)]
    atheris.Setup(words, TARGETS[target])
    atheris.Fuzz()


if __name__ == "__main__":
    main()
