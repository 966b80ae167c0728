"""What fuzzing feeds of the Python readers: one function a format, over bytes that may be anything.

The law of each: a file is read, or refused with one error that names it and says what to do. The parsers in Rust
have their own, in `crates/fuzzed`. `fuzz.py` makes bytes up, `tests/test_fuzzed.py` feeds those that are kept.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tierloom import Profile, traces
from tierloom.capacity import run_files as runs_files
from tierloom.errors import TierloomError
from tierloom.machine_formats import import_machine, to_hwloc
from tierloom.offload import catalog
from tierloom.report.pages import sources as documents
from tierloom.sweeps.store import Store
from tierloom.sweeps.studies import Study

if TYPE_CHECKING:
    from collections.abc import Callable

CORPUS = Path(__file__).parent.parent / "corpus"
NODES = {0: "dram:64GiB", 1: "cxl:64GiB"}
"""What logs do not tell."""


class UnexplainedError(AssertionError):
    """A refusal that does not name the file, or does not say what to do."""


def _law(read: Callable[[Path], object], name: str) -> Callable[[bytes], None]:
    """The reader of a file, fed with bytes."""

    def feed(content: bytes) -> None:
        with tempfile.TemporaryDirectory(prefix="tierloom-fuzz-") as folder:
            path = Path(folder) / name
            path.write_bytes(content)
            try:
                read(path)
            except TierloomError as problem:
                text = str(problem)
                if text.count("\nhint: ") != 1 or folder not in text:
                    raise UnexplainedError(text) from problem

    return feed


def _mess(path: Path) -> object:
    (path.parent / "bwlat_50.txt").write_bytes(path.read_bytes())
    return import_machine([path.parent], nodes=NODES, cores=8)


def _samples(path: Path) -> object:
    profile = Profile.load("mg-e")
    profile.folder = path.parent
    try:
        return profile.samples()
    except FileNotFoundError:  # an empty file is a profile without samples
        return None


def _store(path: Path) -> None:
    with Store(path) as store:
        store.want([b"a"])
        store.missing(retry=True)
        list(store.wanted())
        store.tally()


TARGETS: dict[str, Callable[[bytes], None]] = {
    "config_json": _law(lambda path: catalog.load_model(str(path)), "config.json"),
    "cxl_list": _law(lambda path: import_machine([path], nodes={0: "dram:64GiB"}, cores=8), "fuzzed.json"),
    "documents": _law(lambda path: documents.read([str(path)]), "fuzzed.json"),
    "gguf": _law(lambda path: catalog.load_model(str(path)), "fuzzed.gguf"),
    "gpu": _law(lambda path: catalog.load_gpu(str(path)), "fuzzed.toml"),
    "hwloc": _law(lambda path: to_hwloc(import_machine([path], cores=8).machine), "fuzzed.xml"),
    "mess": _law(_mess, "bwlat_100.txt"),
    "mess_csv": _law(lambda path: import_machine([path], nodes=NODES, cores=8), "memory_curves.csv"),
    "mlc": _law(lambda path: import_machine([f"0:0={path}"], nodes=NODES, cores=8), "fuzzed.log"),
    "runs": _law(runs_files.read, "fuzzed.csv"),
    "samples_npy": _law(_samples, "samples.npy"),
    "store": _law(_store, "fuzzed.sqlite"),
    "sys_archive": _law(lambda path: import_machine([path], nodes=NODES), "fuzzed.tar"),
    "study": _law(lambda path: Study.load(path), "fuzzed.toml"),
    "trace_npy": _law(lambda path: sum(map(len, traces.blocks(path))), "fuzzed.npy"),
}
