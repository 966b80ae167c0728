"""A file is replaced only by one of its kind: what else stands where a verb would write stays, and is named.

Every verb asks before its work, so that nobody waits for an answer that cannot be written.
"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tierloom.errors import RequestError
from tierloom.profile_folder import PROFILE_FILE, RECORDING_FILE

if TYPE_CHECKING:
    from collections.abc import Callable

READ = 8 << 20
"""Bytes of a file that are looked at: all that a text of ours has."""

HEAD = 4096
"""Bytes in which a file of another format says what it is."""


def _toml(*keys: str) -> Callable[[bytes], bool]:
    """Whether a text is TOML with these keys."""

    def has(content: bytes) -> bool:
        try:
            return set(keys) <= tomllib.loads(content.decode()).keys()
        except ValueError:
            return False

    return has


def _json(key: str) -> Callable[[bytes], bool]:
    """Whether a text is a JSON table with this key."""

    def has(content: bytes) -> bool:
        try:
            data: Any = json.loads(content)
        except ValueError:
            return False
        return isinstance(data, dict) and key in data

    return has


def _head(*words: bytes) -> Callable[[bytes], bool]:
    """Whether a file says all of these words in its beginning."""
    return lambda content: all(word in content[:HEAD] for word in words)


def _start(magic: bytes) -> Callable[[bytes], bool]:
    return lambda content: content.startswith(magic)


def _runs(content: bytes) -> bool:
    """Whether a table names the columns of runs."""
    lines = [line for line in content.splitlines() if line.strip() and not line.startswith(b"#")]
    return bool(lines) and b"memory" in lines[0] and b"seconds" in lines[0]


FILES: dict[str, Callable[[bytes], bool]] = {
    "plan": _toml("machine", "profile", "policy", "nodes"),
    "machine": _toml("sockets", "memories"),
    "parameter set": _toml("gpus", "workloads", "uvm"),
    "report": _head(b'<meta name="generator" content="Tierloom'),
    "hwloc topology": _head(b"<topology"),
    "trace": lambda content: content.startswith(b"\x93NUMPY") and b"'address'" in content[:HEAD],
    "table of runs": _runs,
    "PNG picture": _start(b"\x89PNG"),
    "SVG picture": _head(b"<svg"),
    "PDF picture": _start(b"%PDF"),
    "plan for flexgen": _head(b"flexgen"),
    "plan for llama.cpp": _head(b"llama-"),
    "plan for vllm": _head(b"vllm"),
    "plan for deepspeed": _json("train_micro_batch_size_per_gpu"),
    "plan for ktransformers": _head(b"kt run "),
    "plan for lmcache": _head(b"chunk_size: ", b"local_cpu: "),
}
"""By kind of file, how one is known from what it holds."""

FOLDERS = {"profile": (PROFILE_FILE, RECORDING_FILE), "sweep": ("results.sqlite", "study.toml", "results.parquet")}
"""By kind of folder, the files of which it has at least one."""


def named(output: Path | None, default: str, kind: str) -> Path:
    """The file or folder that is written: as it was asked for, or by its default name.

    Raises:
        RequestError: Something of another kind is there.
    """
    path = output or Path(default)
    refuse_others(path, kind)
    return path


def refuse_others(path: Path, kind: str, option: str = "-o") -> None:
    """Refuses to write where something of another kind is; what is empty, and a device, are nobody's.

    Args:
        path: What would be written.
        kind: Of `FILES` or `FOLDERS`.
        option: What names it.

    Raises:
        RequestError: It exists and is of another kind.
    """
    if is_free(path, kind):
        return
    message = f"{path} exists and is no {kind}\nhint: choose another name with {option}"
    raise RequestError(message)


def is_free(path: Path, kind: str) -> bool:
    """Whether something of a kind may be written there."""
    if kind in FOLDERS:
        is_one = any((path / name).exists() for name in FOLDERS[kind])
        return is_one or not path.exists() or (path.is_dir() and not any(path.iterdir()))
    if not path.is_file():
        return True
    try:
        with path.open("rb") as file:
            content = file.read(READ)
    except OSError:
        return False
    return not content or FILES[kind](content)
