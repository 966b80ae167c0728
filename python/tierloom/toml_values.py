"""Values as TOML writes them, for files that are put together line by line."""

from __future__ import annotations

import json


def toml_value(value: str | float | list[str] | list[int]) -> str:
    r"""A text, a number or truth, or a list of such.

    TOML's basic strings are JSON's but for two things: a character beyond U+FFFF stands as it is, not as a surrogate
    pair, and U+007F is escaped.

    Example:
        >>> print(toml_value('a "llama" \U0001f999'), toml_value(["ldram", "cxl"]), toml_value(True))
        "a \"llama\" 🦙" ["ldram", "cxl"] true
    """
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")
