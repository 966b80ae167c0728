"""A newcomer who reads only what is printed, and what came of it: `python tools/newcomer.py [FILE.md]`.

It starts from `tierloom --help` and has six wishes, each with the word by which it would look for it. What it types
is what it read: an example of a help page, or the `next:` of the command before. It puts in its own program, its own
profile or its own machine where an example has another. Nothing else is known to it. The transcript goes to stdout,
or into a page; the exit code is 1 where a command failed or a wish was not met.
"""

from __future__ import annotations

import re
import shlex
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from terminal import Terminal, Typed, block, shortened

OWN = "xz -9 --keep --force numbers.txt"
"""The program that the newcomer came with."""

LINES = 12
"""Lines of an output that the transcript shows, from its start and from its end."""

HEAD = """# What a newcomer finds
Written by `python tools/newcomer.py`, which knows nothing of Tierloom except what is printed. It types the examples of
help pages and the commands after `next:`, with a program, a profile or a machine of its own in place of theirs. The
first one, `tierloom demo`, is what `make demo` ends with. A test types again all that depends on no run of a program,
and compares it with this page.
"""


@dataclass
class Newcomer(Terminal):
    """Somebody who knows what is printed, with their wishes."""

    wishes: list[tuple[str, bool]] = field(default_factory=list)
    heads: dict[int, str] = field(default_factory=dict)

    def help_of(self, *verb: str) -> str:
        """A help page."""
        return self.type(shlex.join(["tierloom", *verb, "--help"]), "to see what there is").text

    def wish(self, what: str) -> None:
        """Begins a part of the transcript."""
        self.heads[len(self.typed)] = what

    def met(self, *patterns: str) -> None:
        """Ends it: whether the files are there that were wished for."""
        what = list(self.heads.values())[-1]
        self.wishes.append((what, all(any(self.folder.glob(pattern)) for pattern in patterns)))

    def follow(self, typed: Typed, **instead: str) -> Typed:
        """Types what each command said comes next, until one says nothing new."""
        seen = {self.meant(each.command) for each in self.typed}
        while fresh := [hint for hint in typed.hints if self.meant(hint) not in seen]:
            command = fresh[0]
            for old, new in instead.items():
                command = re.sub(rf"--{old} \S+", f"--{old} {new}", command)
            seen |= {self.meant(fresh[0]), self.meant(command)}
            typed = self.type(command, "as the line above says")
        return typed

    def meant(self, command: str) -> str:
        """A command without what is this machine's own; which nodes a plan needs may change from profile to profile."""
        return re.sub(r" --node \S+", "", self.told(command))


def verb_for(page: str, word: str) -> str:
    """The verb that a help page describes with a word.

    Raises:
        ValueError: None is; then a newcomer would not find it, either.
    """
    listed = re.findall(r"^  ([a-z]+)  +(\S.*(?:\n {6,}\S.*)*)", page, re.MULTILINE)
    found = next((verb for verb, about in listed if word in " ".join(about.split())), None)
    if found is None:
        message = f"no verb says `{word}`:\n{page}"
        raise ValueError(message)
    return found


def example_of(page: str) -> str:
    """The first example of a help page."""
    return re.findall(r"^ +\$ (tierloom .*)$", page, re.MULTILINE)[0]


def visit(newcomer: Newcomer) -> None:
    """All six wishes."""
    (newcomer.folder / "numbers.txt").write_text("".join(f"{line * 7919 % 100_003}\n" for line in range(2_000_000)))
    newcomer.wish("To see it work")
    start = newcomer.help_of()
    newcomer.follow(newcomer.type(f"tierloom {verb_for(start, 'show what it gains')}", "the first verb of the list"))
    newcomer.met("**/*.plan.toml", "**/*.profile")

    newcomer.wish("A plan for a program of its own")
    ours = re.sub(r" -- .*", f" -- {OWN}", example_of(start)).replace("app", "own")
    profiled = newcomer.type(ours, "the first example of the list, with its own program")
    newcomer.follow(profiled)
    newcomer.met("own.profile", "own.plan.toml")

    newcomer.wish("A machine of its own")
    verb = verb_for(start, "write new ones")
    kind = verb_for(newcomer.help_of(verb), "think of")
    made = newcomer.type(example_of(newcomer.help_of(verb, kind)), "the first example")
    file = re.findall(r"wrote (\S+\.toml)", made.text)[0]
    newcomer.follow(
        newcomer.type(re.sub(r"--machine \S+", f"--machine {file}", profiled.hints[0]), "with its own machine")
    )
    newcomer.met(file, "own.plan.toml")

    for what, word, *wanted in WISHES:
        newcomer.wish(what)
        path = [verb_for(start, word)]
        newcomer.follow(newcomer.type(example_of(newcomer.help_of(*path)), "the first example"))
        newcomer.met(*wanted)


WISHES = (
    ("Where a language model's tensors go", "LLM"),
    ("Many machines at once", "study", "*.sweep"),
    ("A page to show to others", "charts", "*.html"),
)
"""What it wants, the word that it looks for, and files that should be there then."""


def transcript(newcomer: Newcomer) -> str:
    """The page."""
    parts = [HEAD]
    for index, each in enumerate(newcomer.typed):
        if index in newcomer.heads:
            parts.append(f"\n## {newcomer.heads[index]}\n")
        parts.append(f"{each.why.capitalize()}:\n\n{block(each, shortened(each.text, LINES))}")
    return "\n".join(parts).replace("\n\n\n", "\n\n")


def main() -> int:
    """Visits, and writes the transcript."""
    with tempfile.TemporaryDirectory() as folder:
        newcomer = Newcomer(Path(folder))
        visit(newcomer)
    text = transcript(newcomer)
    if sys.argv[1:]:
        Path(sys.argv[1]).write_text(text, encoding="utf-8")
    else:
        sys.stdout.write(text)
    failed = newcomer.failed + [f"not met: {what}" for what, is_met in newcomer.wishes if not is_met]
    sys.stderr.write("".join(f"{each}\n" for each in failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
