"""A program that is judged: a command in a folder, which holds its truth and its recordings too."""

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Self

from tierloom import same_library

SAME_LIBRARY = {
    "GLIBC_TUNABLES": same_library.setting("glibc.cpu.hwcaps=-ERMS,-FSRM"),
    "NPY_DISABLE_CPU_FEATURES": "AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL X86_V4 AVX512_ICL AVX512_SPR",
    "OPENBLAS_CORETYPE": "Haswell",
    "OMP_WAIT_POLICY": "passive",
    "MALLOC_ARENA_MAX": "1",
}
"""Libraries that choose code by the processor must choose the same under Valgrind, which knows no AVX-512. NumPy's
features have other names from 2.4 on. Strings are handled without `rep`, whose rounds are the processor's affair."""


@dataclass(frozen=True)
class Program:
    """What is run, where, and what is known of it."""

    name: str
    command: tuple[str, ...]
    folder: Path
    about: str
    environment: dict[str, str] = field(default_factory=dict)
    stdin: str | None = None
    """A file of the folder."""

    @classmethod
    def read(cls, folder: Path) -> Self:
        """From its folder."""
        words = json.loads((folder / "program.json").read_text())
        words["command"] = tuple(words["command"])
        return cls(folder=folder, **words)

    def write(self) -> None:
        """Into its folder."""
        words = {key: value for key, value in asdict(self).items() if key != "folder"}
        (self.folder / "program.json").write_text(json.dumps(words, indent=1) + "\n")

    @property
    def executable(self) -> Path:
        """The file that runs."""
        return (self.folder / self.command[0]).resolve()

    @property
    def surroundings(self) -> dict[str, str]:
        """Its environment, the same for truth and recordings."""
        return {**os.environ, **SAME_LIBRARY, **self.environment}

    def input(self) -> IO[str]:
        """What it reads."""
        return (self.folder / (self.stdin or os.devnull)).open()
