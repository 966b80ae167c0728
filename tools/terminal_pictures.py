"""Pictures of a terminal for the documents: `python tools/terminal_pictures.py`.

Each command is typed at a pseudo-terminal, and what that shows is drawn into `docs`, colours included. The commands
only predict, with programs and machines of the catalog, so they print the same everywhere: a test draws them again.
Pictures need no network, so they name fonts that readers have.
"""

from __future__ import annotations

import html
import io
import os
import pty
import re
import subprocess
import sys
import tempfile
import termios
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from rich.ansi import AnsiDecoder
from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text
from terminal import ROOT, Terminal, abridged

COLUMNS = 100
ROWS = 60
KEPT = {"PATH", "PYTHONPATH", "XDG_STATE_HOME"}
"""What a command sees of our environment: colours must not depend on who draws."""

FONT_ASPECT = 0.6
"""Width of a letter by its height, as in Menlo, SF Mono, DejaVu Sans Mono and Liberation Mono."""


@dataclass(frozen=True)
class Picture:
    """A command, and which lines of its output are shown: so many from each of some patterns on."""

    name: str
    command: str
    spans: tuple[tuple[str, int], ...]
    before: str = ":"
    """A command that no picture shows."""

    @property
    def file(self) -> Path:
        """Where it is kept."""
        return ROOT / "docs" / f"{self.name}.svg"


PICTURES = (
    Picture(
        "terminal-plan",
        'tierloom plan cg-e --machine "32 cores, dram 64GiB 100ns 300GB/s, cxl 1TiB 250ns 60GB/s" --max-slowdown 5%',
        ((".* in dram", 2), (".* against +dram$", 9), ("Where the data goes", 8)),
    ),
    Picture(
        "terminal-frontier",
        "tierloom plan cg-e --machine planned.toml --threads 32 --max-slowdown 10%",
        ((".* in dram", 2), ("What dram buys", 13)),
        'tierloom machine new "32 cores, dram 64GiB 100ns 300GB/s, cxl 512GiB 250ns 60GB/s" --name planned',
    ),
    Picture(
        "terminal-offload",
        "tierloom offload infer --model qwen3-235b-a22b --gpu a10 --machine liu-a --users 4",
        ((".* users with", 3), (" +policy ", 5), ("Where each part goes", 10)),
    ),
    Picture(
        "terminal-simulate",
        "tierloom simulate mg-e --machine liu-a --nodes ldram,cxl --fast-memory 96GiB --policy none,tiering,tierloom",
        (("tierloom is", 9), ("Counters", 11)),
    ),
)

THEME = TerminalTheme(
    background=(30, 33, 39),
    foreground=(220, 223, 228),
    normal=[
        *((63, 68, 81), (240, 113, 120), (143, 206, 112), (229, 192, 123)),
        *((97, 175, 239), (209, 134, 230), (86, 196, 206), (220, 223, 228)),
    ],
)
"""Light letters on a dark ground with a lighter edge, for pages of either kind."""

FORM = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height:.0f}" role="img" aria-label="COMMAND">
<title>COMMAND</title>
<style>
.{unique_id}-matrix {{ font: {char_height}px ui-monospace, Menlo, "DejaVu Sans Mono", Consolas, monospace; }}
.{unique_id}-title {{ font: bold 18px system-ui, "DejaVu Sans", sans-serif; }}
{styles}
</style>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""
"""What Rich fills in. Its own form loads a font from the network."""


def drawn(picture: Picture) -> str:
    """The SVG."""
    with tempfile.TemporaryDirectory() as folder:
        terminal = Terminal(Path(folder))
        terminal.run(picture.before).check_returncode()
        lines = list(AnsiDecoder().decode("\n".join(screen(sent(terminal, picture.command)))))
    shown = abridged([line.plain.rstrip() for line in lines], *picture.spans)
    told = [Text(each, "dim") if isinstance(each, str) else lines[each] for each in shown]
    return svg(picture, [*prompt(picture.command), *told])


def sent(terminal: Terminal, command: str) -> str:
    """All that a command writes to a terminal, in order.

    Raises:
        CalledProcessError: A command that failed.
    """
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (ROWS, COLUMNS))
    words = ["bash", "-c", command]
    own = {"HOME": str(terminal.folder), "LANG": "C.UTF-8", "TERM": "xterm-256color"}
    environment = {key: value for key, value in terminal.environment.items() if key in KEPT} | own
    with subprocess.Popen(
        words, cwd=terminal.folder, env=environment, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs
    ) as program:
        os.close(theirs)
        text = received(ours).decode()
    if program.returncode:
        raise subprocess.CalledProcessError(program.returncode, words, text)
    return text


def received(terminal: int) -> bytes:
    """Bytes until the other side is closed, which Linux tells as an error."""
    with open(terminal, "rb", buffering=0) as stream:
        chunks = []
        try:
            while chunk := stream.read(1 << 16):
                chunks.append(chunk)
        except OSError:
            pass
    return b"".join(chunks)


def screen(text: str) -> list[str]:
    r"""Lines that stand there in the end: a spinner or bar that was erased is not among them.

    Example:
        >>> screen("planning\r\n\r\x1b[1A\x1b[2Kdone\r\n")
        ['done', '']
    """
    pieces = re.split(r"(\r?\n|\r|\x1b\[\d*[AK]|\x1b\[\?25[hl])", text)
    lines, at = [""], 0
    for written, control in zip(pieces[::2], [*pieces[1::2], ""], strict=True):
        lines[at] += written
        if control.endswith("\n"):
            at += 1
            lines += [""] * (at == len(lines))
        elif control.endswith("A"):
            at -= int(control[2:-1] or 1)
        elif control == "\r" or control.endswith("K"):
            lines[at] = ""
    return lines


def prompt(command: str) -> list[Text]:
    """The command as one types it, its last options in a second line where the first is too short."""
    room = COLUMNS - len("$  \\")
    if len(command) <= room:
        return [Text.assemble(("$ ", "dim"), (command, "bold"))]
    end = command.rindex(" --", 0, room)
    return [Text.assemble(("$ ", "dim"), (f"{command[:end]} \\", "bold")), Text(f"    {command[end + 1 :]}", "bold")]


def svg(picture: Picture, lines: list[Text]) -> str:
    """Lines of a terminal, long ones broken where it breaks them."""
    console = Console(width=COLUMNS, record=True, file=io.StringIO(), color_system="truecolor", force_terminal=True)
    for line in lines:
        for row in line.divide(range(COLUMNS, len(line), COLUMNS)):
            console.print(row, no_wrap=True, highlight=False)
    verb = " ".join(takewhile(str.isalpha, picture.command.split()))
    made = console.export_svg(
        title=verb,
        theme=THEME,
        code_format=FORM,
        font_aspect_ratio=FONT_ASPECT,
        unique_id=picture.name,
    )
    # Rich clips each row, the last by a path that is not there; no row is too long.
    made = re.sub(r' clip-path="[^"]*"', "", made)
    return made.replace("COMMAND", html.escape(picture.command))


def main() -> int:
    """Draws all of them."""
    for picture in PICTURES:
        picture.file.write_text(drawn(picture), encoding="utf-8")
        sys.stderr.write(f"wrote {picture.file.relative_to(ROOT)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
