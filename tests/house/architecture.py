"""The tables of ARCHITECTURE.md, from the code: rooms with their arrows, and a row for every module.

`python tests/house/architecture.py` writes them anew; a test holds them to the code.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

from rooms import ROOMS

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "ARCHITECTURE.md"


def rooms() -> Iterator[str]:
    """The crates, from the ground up."""
    yield "| room | kind | what it does | uses |"
    yield "|---|---|---|---|"
    for name, room in ROOMS.items():
        about = tomllib.loads((ROOT / "crates" / name / "Cargo.toml").read_text(encoding="utf-8"))
        uses = ", ".join(other for other in ROOMS if other in room.uses) or "-"
        uses = "all" if len(room.uses) > len(ROOMS) * 2 // 3 else uses
        description = about["package"]["description"]
        yield f"| [`crates/{name}`](crates/{name}/README.md) | {room.kind} | {description} | {uses} |"


def rust_modules() -> Iterator[str]:
    """Files and folders at the top of each crate, with the first sentence of each."""
    for crate in ROOMS:
        source = ROOT / "crates" / crate / "src"
        yield from ("", "<details>", f"<summary><code>crates/{crate}</code></summary>", "")
        yield from ("| module | what it is |", "|---|---|")
        for name, file in sorted(top_level(source).items()):
            yield f"| [`{name}`]({file.relative_to(ROOT)}) | {first_sentence(rust_head(file))} |"
        yield from ("", "</details>")


def python_modules() -> Iterator[str]:
    """Files and folders at the top of the Python package, with the first sentence of each."""
    source = ROOT / "python" / "tierloom"
    yield from ("", "<details>", "<summary><code>python/tierloom</code></summary>", "")
    yield from ("| module | what it is |", "|---|---|")
    folders = {folder.name + "/": folder / "__init__.py" for folder in source.iterdir() if folder.is_dir()}
    files = {file.stem: file for file in source.glob("*.py")}
    for name, file in sorted({**folders, **files}.items()):
        if file.exists():
            head = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
            if head:
                yield f"| [`{name.removesuffix('/')}`]({file.relative_to(ROOT)}) | {first_sentence(head)} |"
    yield from ("", "</details>")


def top_level(source: Path) -> dict[str, Path]:
    """The modules right below a crate's root by name, and the root."""
    files = {path.stem: path for path in source.glob("*.rs")}
    return {**files, **{path.parent.name: path for path in source.glob("*/mod.rs")}}


def rust_head(file: Path) -> str:
    """The first paragraph of a file's documentation."""
    lines = [line[3:].strip() for line in file.read_text(encoding="utf-8").splitlines() if line.startswith("//!")]
    return "\n".join(lines).split("\n\n")[0]


def first_sentence(paragraph: str) -> str:
    """Without a full stop, and fit for a table."""
    text = " ".join(paragraph.split("\n\n")[0].split())
    text = re.split(r"(?<=[^.]{3}[.])\s", text, maxsplit=1)[0].rstrip(".:")
    return re.sub(r"\[(`[^`]+`)\]", r"\1", text).replace("|", "\\|")


def written(page: str) -> str:
    """The page with its tables as the code has them."""
    tables = {"rooms": rooms(), "modules": (line for part in (rust_modules(), python_modules()) for line in part)}
    for name, lines in tables.items():
        begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
        before, rest = page.split(begin)
        page = before + begin + "\n" + "\n".join(lines).strip("\n") + "\n" + end + rest.split(end, 1)[1]
    return page


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
