"""The one place where text meets a terminal: what could steer the terminal is shown, not sent.

Names of programs, objects, machines and files come from whoever made them. A control character in one
may move the cursor, change the title or hide what follows; an override of the writing direction shows
another text than is there (Boucher and Anderson, *Trojan Source*, 2023).
"""

from __future__ import annotations

LAYOUT = "\t\n"
"""Controls that text is laid out with."""
DIRECTIONS = (0x061C, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A))
"""Marks, embeddings, overrides and isolates of the writing direction (Unicode Annex 9), and between them the
line and the paragraph separator."""
STEERING = sorted({*range(0x20), *range(0x7F, 0xA0), *DIRECTIONS} - set(map(ord, LAYOUT)))
"""C0 and C1 controls (ECMA-48), and the above."""
BYTES = range(0xDC80, 0xDD00)
"""What Python makes of a byte in a file's name that is no UTF-8; it cannot be written as text (PEP 383)."""


def _escape(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


_SHOWN = {code: _escape(code) for code in STEERING} | {code: _escape(code - 0xDC00) for code in BYTES}
_IN_JSON = {code: f"\\u{code:04x}" for code in [*STEERING, *BYTES]}


def visible(text: str) -> str:
    r"""The text with everything that steers a terminal as an escape that a person can read.

    Example:
        >>> visible("grid\x1b[31m")
        'grid\\x1b[31m'
    """
    return text.translate(_SHOWN)


def visible_json(text: str) -> str:
    r"""A JSON document in which these characters are JSON's own escapes: it means the same.

    Example:
        >>> visible_json('{"name": "a\u202eb"}')
        '{"name": "a\\u202eb"}'
    """
    return text.translate(_IN_JSON)
