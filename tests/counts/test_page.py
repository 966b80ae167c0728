"""The page about accuracy says what the referee found."""

from pathlib import Path

from benches.counts import page

ACCURACY = Path(__file__).parents[2] / "docs" / "accuracy.md"


def test_the_page_has_the_results() -> None:
    text = ACCURACY.read_text(encoding="utf-8")
    assert page.written(text) == text, "python -m benches.counts page docs/accuracy.md"
    assert "| NAS EP class W, 1 thread, g++ -O2 |" in text
