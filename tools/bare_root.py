"""Runs commands in a clone of this repository on a bare Debian, as a stranger would: `make test-bare`.

Usage: python3 tools/bare_root.py SUITE user|root COMMAND…

The root is what debootstrap makes of the suite: the stock tools, and this machine's Rust toolchain, to be
read only. The clone holds what is committed. How packages of Python and Rust are reached is this machine's
configuration, copied. Afterwards: the time of each command, and how many tests passed or were skipped, and why.

Roots are kept under build/roots, and each run gets a copy of one. It takes root's rights.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "python" / "tierloom"))

from debian import packages, sources  # noqa: E402 (the package is not built yet)

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOTS = ROOT / "build" / "roots"
STRANGER = 1000
"""The user without rights."""

PASSED_ON = ("PIP_CERT", "PIP_INDEX_URL", "PIP_DEFAULT_TIMEOUT", "http_proxy", "https_proxy", "no_proxy", "TERM")
"""Variables that say how this machine reaches packages."""

COPIED = (
    "/etc/resolv.conf",
    "/etc/hosts",
    "/etc/pip.conf",
    "/etc/ssl/certs/ca-certificates.crt",
    "~/.config/pip/pip.conf",
    "~/.cargo/config.toml",
)
"""Files that say the same; those of a home go to the home of whoever runs the commands."""

MOUNTED = ("dev", "proc", "sys")


def main() -> int:
    """Makes the root, runs the commands, says how long each took."""
    suite, who, *commands = sys.argv[1:]
    if reason := impossible():
        sys.stderr.write(f"skipped: no bare Debian here: {reason}\n")
        return 1 if os.environ.get("TIERLOOM_REQUIRE") else 0
    folder = ROOTS / f"{suite}-{who}"
    discard(folder)
    subprocess.run(["cp", "--archive", "--reflink=auto", base(suite), folder], check=True)
    home = prepare(folder, who)
    codes = [run(folder, home, who, command) for command in commands]
    if not any(codes):
        discard(folder)
    return max(codes)


def impossible() -> str:
    """Why no root can be made or entered here; empty where it can."""
    if os.geteuid() != 0:
        return "only root can make one"
    if shutil.which("debootstrap") is None:
        return packages.named("debootstrap").hint
    if sources.debian() is None:
        return "apt names no mirror of Debian"
    tried = subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False)
    return "" if tried.returncode == 0 else "mounting is refused"


def base(suite: str) -> Path:
    """The root with the stock tools alone, made once."""
    folder, stock = ROOTS / suite, ["ca-certificates", *(p.name for p in packages.listed() if p.group == "build")]
    made = ROOTS / f"{suite}.packages"
    if made.exists() and made.read_text() == " ".join(stock):
        return folder
    source = sources.debian()
    if source is None:
        raise AssertionError(impossible())
    shutil.rmtree(folder, ignore_errors=True)
    ROOTS.mkdir(parents=True, exist_ok=True)
    words = ["debootstrap", "--variant=minbase", f"--include={','.join(stock)}", suite, folder, source.uri]
    with (ROOTS / f"{suite}.log").open("w") as log:
        subprocess.run(words, check=True, stdout=log, stderr=log)
    made.write_text(" ".join(stock))
    return folder


def prepare(folder: Path, who: str) -> Path:
    """Puts the clone and this machine's configuration into a root; the home of who runs the commands."""
    home = Path("/root" if who == "root" else "/home/stranger")
    inside = folder / home.relative_to("/")
    inside.mkdir(exist_ok=True)
    for name in COPIED:
        source = Path(name).expanduser()
        target = inside / name.removeprefix("~/") if name.startswith("~") else folder / name.removeprefix("/")
        if source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)
    subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", ROOT, inside / "tierloom"], check=True)
    (folder / "opt" / "rust").mkdir()
    if who != "root":
        subprocess.run(
            ["chroot", folder, "useradd", "--uid", str(STRANGER), "--shell", "/bin/sh", "stranger"], check=True
        )
        subprocess.run(["chown", "--recursive", "--no-dereference", f"{STRANGER}:{STRANGER}", inside], check=True)
    return home


def run(folder: Path, home: Path, who: str, command: str) -> int:
    """One command of the stranger's, with all that it prints in a log beside the root."""
    log = folder.with_suffix(f".{re.sub(r'[^a-z]+', '-', command)}.log")
    start = time.monotonic()
    with log.open("w") as told:
        done = subprocess.run(entering(folder, home, who, command), stdout=told, stderr=subprocess.STDOUT, check=False)
    outcome = "done" if done.returncode == 0 else f"failed with {done.returncode}"
    say(f"{folder.name}: `{command}`: {outcome} in {time.monotonic() - start:.0f} s; {log.relative_to(ROOT)}")
    text = log.read_text(errors="replace")
    for line in tally(text):
        say(f"  {line}")
    if done.returncode != 0:
        say("".join(f"  | {line}\n" for line in text.splitlines()[-40:]))
    return done.returncode


def entering(folder: Path, home: Path, who: str, command: str) -> list[str]:
    """The words that run a command in a root; its mounts and processes end with it."""
    toolchain = subprocess.run(
        ["rustc", "--print", "sysroot"], capture_output=True, text=True, check=True
    ).stdout.strip()
    mounts = [f"mount --rbind /{name} {folder}/{name}" for name in MOUNTED if name != "proc"]
    mounts += [f"mount -t proc proc {folder}/proc", f"mount --bind -o ro {toolchain} {folder}/opt/rust"]
    variables = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    variables |= {"HOME": str(home), "PATH": "/opt/rust/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}
    user = [] if who == "root" else [f"--userspec={STRANGER}:{STRANGER}"]
    inner = ["chroot", *user, str(folder), "env", "-i", *(f"{name}={value}" for name, value in variables.items())]
    inner += ["sh", "-c", f"cd {home}/tierloom && {command}"]
    script = " && ".join(["mount --make-rprivate /", *mounts, f"exec {shlex.join(inner)}"])
    return ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", script]


def tally(text: str) -> Iterator[str]:
    """What pytest and cargo counted, and the reasons of skipped tests."""
    rust = [tuple(map(int, found)) for found in re.findall(r"(\d+) passed; (\d+) failed; (\d+) ignored", text)]
    if rust:
        passed, failed, ignored = map(sum, zip(*rust, strict=True))
        yield f"cargo: {passed} passed, {failed} failed, {ignored} ignored"
    yield from re.findall(r"^=+ (.*\d+ passed.*?) =+$", text, re.MULTILINE)
    reasons: Counter[str] = Counter()
    for count, reason in re.findall(r"^SKIPPED \[(\d+)\] \S+: (.*)", text, re.MULTILINE):
        reasons[reason] += int(count)
    yield from (f"skipped {count}: {reason}" for reason, count in reasons.most_common())


def discard(folder: Path) -> None:
    """Removes a copy of a root; nothing is mounted there, for mounts end with the command that made them."""
    if folder.exists():
        subprocess.run(["rm", "--recursive", "--force", "--one-file-system", folder], check=True)


def say(text: str) -> None:
    """A line on stdout, at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
