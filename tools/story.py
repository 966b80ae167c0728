"""One known program, from its run time to the DRAM that it needs: `python tools/story.py [FILE.md]`.

It makes the program's input, types every command of the story, and writes the page with what they printed. Figures in
the text are those of the same run. A picture lies beside the page. It takes a minute or two, Debian's
`python3-scipy`, and for the last chapter QEMU. The exit code is 1 where a command failed, or a claim of the text does
not hold.
"""

from __future__ import annotations

import re
import sys
import tempfile
import textwrap
import time
from pathlib import Path

from story_figures import LINKS, MACHINE, MIGRATIONS, PAGES, PAGEWISE, QUESTION, ROUNDS, SHARE, Figures
from terminal import Terminal, block, parts

SMALL = PAGES // 10
"""Pages for processors that are emulated."""

WIDTH = 118
"""Columns of the text."""

WEB = """# web.py: pages that link to others at random
import sys
import numpy

pages = int(sys.argv[1])
links = numpy.random.default_rng(1).integers(0, pages, (pages, LINKS), dtype=numpy.int32)
numpy.save(sys.argv[2], links)
""".replace("LINKS", str(LINKS))

RANK = """# rank.py: PageRank
import sys
import numpy
import scipy.sparse

links = numpy.load(sys.argv[1])
pages, each = links.shape
starts = numpy.arange(0, links.size + 1, each, dtype=numpy.int32)
weights = numpy.full(links.size, 0.85 / each)
web = scipy.sparse.csr_matrix((weights, links.ravel(), starts), shape=(pages, pages))
rank = numpy.full(pages, 1 / pages)
for _ in range(ROUNDS):
    rank = web @ rank
    rank += 0.15 / pages
print(f"the ranks add up to {rank.sum():.6f}")
""".replace("ROUNDS", str(ROUNDS))


def tell(terminal: Terminal, figures: Figures) -> list[str]:
    """Types the story; its chapters."""
    return [
        chapter("The program", *program(terminal)),
        chapter("What it has", *objects(terminal, figures)),
        chapter("On a server with a CXL card", *policies(terminal, figures)),
        chapter("How little DRAM", *frontier(terminal, figures)),
        chapter("Would the kernel move the pages?", *migration(terminal, figures)),
        chapter("Where the pages are", *laboratory(terminal)),
        NEXT,
    ]


def chapter(title: str, *paragraphs: str) -> str:
    """A part of the page."""
    return "\n".join([f"## {title}", *paragraphs])


def program(terminal: Terminal) -> list[str]:
    """The program, its input, and its time."""
    for name, text in (("web.py", WEB), ("rank.py", RANK)):
        (terminal.folder / name).write_text(text, encoding="utf-8")
    made = terminal.type(f"/usr/bin/python3 web.py {PAGES} web.npy")
    ran = terminal.type("time /usr/bin/python3 rank.py web.npy")
    return [
        prose(f"""
        PageRank says which pages of a web matter. With SciPy a round is one product of a sparse matrix and a vector,
        as in `networkx.pagerank`. This web has {PAGES / 1e6:.0f} million pages with {LINKS} links each:
        """),
        f"```python\n{WEB}```\n",
        f"```python\n{RANK}```\n",
        block(made, made.text),
        block(ran, ran.text.replace("\n\n", "\n")),
    ]


def objects(terminal: Terminal, figures: Figures) -> list[str]:
    """What data it has, and whether it is counted right."""
    typed = terminal.type("tierloom profile -o rank.profile -- /usr/bin/python3 rank.py web.npy")
    count, rounds = figures.links["accesses"], PAGES * LINKS * ROUNDS
    off = max(count["high"] / count["count"], count["count"] / count["low"]) - 1
    return [
        prose("""
        `profile` runs the program unchanged and lists its data by what asked for it. Arrays of NumPy have the name of
        NumPy's library, so go by their sizes:
        """),
        block(typed, parts(typed.text, ("the ranks", 4), ("Data objects", 14))),
        prose(f"""
        - **Ranks**: {mib(PAGES * 8)} each, the old and the new. They are read at random, and the program spends
          {percent(figures.waits_for_ranks)} of its time waiting for them. They have two entries, because Python 3.11
          takes another path to NumPy once a loop is warm.
        - **Weights** ({mib(PAGES * LINKS * 8)}, in one entry with the first ranks) and **links**
          ({mib(PAGES * LINKS * 4)}) are most of the data. They are read in order, which the processor foresees, so
          the program hardly waits for them.

        Are the counts right? A round reads each of the {PAGES * LINKS / 1e6:.0f} million links once, so {ROUNDS}
        rounds read {rounds / 1e6:.0f} million. The profile says {count["count"] / 1e6:.0f} million
        ±{percent(off, 1)}. Where an interval is wide, `profile --count` counts instead
        ([which counts to trust](accuracy.md)).
        """),
    ]


def policies(terminal: Terminal, figures: Figures) -> list[str]:
    """What the kernel would make of it, and what a plan makes of it."""
    typed = terminal.type(f"tierloom plan {QUESTION} --fast-memory {SHARE} --plot story.png")
    seconds = {each: figures.prediction(each)["time_s"] for each in ("local", PAGEWISE)}
    return [
        prose(f"""
        `{MACHINE}` is in the catalog, from published measurements of a server with DDR5 and a CXL card. The card has
        {figures.latency_ratio:.1f} times the latency of DRAM. Say the program may have DRAM for {percent(share())} of
        its data:
        """),
        block(typed, parts(typed.text, (r".* in ldram", 3), (" +policy  ", 12), ("Where the data goes", 9))),
        prose(f"""
        - **First touch** (`local`) is what Linux does, and takes {seconds["local"]:.1f} s. Links and weights come
          first and fill the DRAM.
        - **Interleaving pages** takes {seconds[PAGEWISE]:.1f} s. It treats all data alike.
        - **The plan** takes {figures.chosen["time_s"]:.1f} s. It has the ranks in DRAM, and links and weights on the
          card. `tierloom` and `soar` are two ways to place by object.

        So first touch takes **{figures.gain("local"):.2f} times as long** as the plan. At the low ends of both ranges
        it is {figures.gain("local", "low_s"):.2f} times, and at the high ends
        {figures.gain("local", "high_s"):.2f} times. All these are predictions for a server that we do not have.
        """),
    ]


def frontier(terminal: Terminal, figures: Figures) -> list[str]:
    """How much DRAM for which time."""
    typed = terminal.type(f"tierloom plan {QUESTION} --max-slowdown 5% -o enough.plan.toml")
    return [
        prose(f"""
        ![Predicted time of PageRank by placement policy, and by amount of DRAM](story.png)

        The curve bends where the ranks fit. On the card alone the program takes
        {figures.frontier[0]["slowdown"]:.1f} times as long as in DRAM alone. With {percent(share())} of its data in
        DRAM it takes {figures.over_all_dram:.2f} times as long. To lose 5 % at most, {percent(figures.little_loss)} of
        the data must be in DRAM:
        """),
        block(typed, parts(typed.text, (r".* in ldram", 2), ("What ldram buys", 16))),
        prose("""
        At the bend, the time still lost is for links and weights, which come from the card. Both entries of the ranks
        count here as if they existed all the time. Nearly always only one of them does, so in reality the curve bends
        earlier.
        """),
    ]


def migration(terminal: Terminal, figures: Figures) -> list[str]:
    """What the kernel's own page migration would do."""
    typed = terminal.type(f"tierloom simulate {QUESTION} --fast-memory {SHARE} --policy {MIGRATIONS}")
    best = min(MIGRATIONS.split(",")[1:], key=figures.migrations.__getitem__)
    return [
        prose("Linux can watch pages and move the hot ones. `simulate` does the same, page by page:"),
        block(typed, parts(typed.text, (r"\S", 1), (" policy  ", 5))),
        prose(f"""
        It does not help. The better of the two, `{best}`, takes {figures.migrations[best]:.1f} s, and the plan
        {figures.chosen["time_s"]:.1f} s. `autonuma` moves little, because DRAM is full. `tiering` moves some pages up
        and others down, and pays for it. In reality each round also puts its ranks into new pages; the simulation
        keeps them where the old ones were.
        """),
    ]


def laboratory(terminal: Terminal) -> list[str]:
    """The plan on a kernel that has two nodes."""
    made = terminal.type(f"/usr/bin/python3 web.py {SMALL} small.npy")
    run = "tierloom run --plan rank.plan.toml -- /usr/bin/python3 rank.py small.npy"
    typed = terminal.type(f"tierloom lab run -- {run}")
    return [
        prose("""
        `run` places each object when the program asks for its memory. If you have no such server, `lab` is a virtual
        machine with a second memory node. Its processors are emulated, so the web is a tenth as large:
        """),
        block(made, made.text),
        block(typed, parts(typed.text, (" object  ", 9))),
        prose("""
        The guest's kernel reports where the pages were: the ranks on the node for `ldram`, links and weights on the one
        for `cxl`. The time it took means nothing: the memory is emulated.
        """),
    ]


NEXT = """## From here
- your own program: replace what stands after `--` ([in ten minutes](tutorial.md));
- another server: `tierloom machine list`, or [one that you think of](machines.md);
- how counts, waits and predictions come about, and how far to trust them: [how it works](how-it-works.md);
- other programs, and that they run as before: [real programs](real-programs.md)."""


def head(figures: Figures, took_s: float) -> str:
    """The answer, and how the page was made."""
    said = prose(f"""
    SciPy ranks a web of {PAGES / 1e6:.0f} million pages here in {figures.wall_s:.0f} s, with
    {mib(figures.data_bytes)} of data. How little DRAM would do on a published server with a CXL card? **With
    {percent(share())} of the data in DRAM, first touch is predicted to take
    {figures.prediction("local")["time_s"]:.1f} s, and Tierloom's plan {figures.chosen["time_s"]:.1f} s.** With all of
    it in DRAM the program would take {figures.frontier[-1]["time_s"]:.1f} s.

    `python tools/story.py docs/story.md` typed all of this in {took_s:.0f} s on two cores, and wrote this page with
    the figures of that run. It needs `apt-get install python3-scipy`, and [QEMU](lab.md#what-it-takes) for the last
    part. A test types it again, and checks what the text says.
    """)
    return f"# A real story: PageRank with SciPy\n{said}"


def prose(text: str) -> str:
    """Paragraphs and lists, filled to the width of a page."""
    paragraphs = [re.split(r"\n\s*(?=- )", each.strip()) for each in re.split(r"\n\s*\n", text)]
    return "\n\n".join("\n".join(map(filled, items)) for items in paragraphs) + "\n"


def filled(item: str) -> str:
    """One paragraph, or one item of a list."""
    indent = "  " if item.startswith("- ") else ""
    words = " ".join(item.split())
    return textwrap.fill(words, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def mib(size: float) -> str:
    """Bytes, as the tables have them."""
    return f"{size / 2**20:.0f} MiB"


def percent(part: float, digits: int = 0) -> str:
    """A share, as the tables have it."""
    return f"{100 * part:.{digits}f} %"


def share() -> float:
    """The share of the data that may be in DRAM."""
    return float(SHARE.removesuffix("%")) / 100


def main() -> int:
    """Tells the story, and writes the page with its picture."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        terminal = Terminal(Path(folder), columns=120)
        figures = Figures(terminal)
        chapters = tell(terminal, figures)
        page = "\n".join([head(figures, time.monotonic() - began), *chapters]) + "\n"
        wrong = terminal.failed + [f"does not hold: {claim}" for claim, holds in figures.claims.items() if not holds]
        picture = (terminal.folder / "story.png").read_bytes()
    write(page, picture)
    sys.stderr.write("".join(f"{each}\n" for each in wrong))
    return 1 if wrong else 0


def write(page: str, picture: bytes) -> None:
    """The page to stdout, or into the file that was asked for, with its picture beside it."""
    if not sys.argv[1:]:
        sys.stdout.write(page)
        return
    file = Path(sys.argv[1])
    file.write_text(page, encoding="utf-8")
    file.with_suffix(".png").write_bytes(picture)


if __name__ == "__main__":
    sys.exit(main())
