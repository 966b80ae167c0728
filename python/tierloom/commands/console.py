"""Rich's console, made harmless. Only what prints loads it: a help text must not wait for Rich."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.segment import Segment

from tierloom.commands.terminal import visible

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import ConsoleOptions, RenderableType
    from rich.text import Text


class Terminal(Console):
    """A console that shows what steers terminals, whoever made the text; colours and cursors are its own alone."""

    def render_str(self, text: str, **how: Any) -> Text:  # noqa: ANN401 (as rich has it)
        """Text of a string, escaped before its width counts."""
        return super().render_str(visible(text), **how)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Pieces to write: what came as `Text` is escaped here, rich's own control codes pass."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(visible(segment.text), segment.style)
