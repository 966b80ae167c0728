"""Models and GPUs by name or file: the only door of this room to the outside world.

A model is a name of the catalog, the path of a ``config.json``, or the path of a GGUF file; a GPU a
name of the catalog or the path of a TOML file like those in it.
"""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from tierloom import catalog
from tierloom.errors import RequestError
from tierloom.offload.architectures import model_of
from tierloom.offload.gpu import Gpu
from tierloom.readers import Flaws, reading
from tierloom.schema.documents import Kind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tierloom.offload.model import Model

FIGURES = (
    "memory_bytes",
    "memory_gb_s",
    "tflop_s",
    "in_gb_s",
    "out_gb_s",
    "copy_ns",
    "prefill_efficiency",
    "decode_efficiency",
    "memory_efficiency",
)
"""Figures of a GPU file, each a table with value, kind and source."""

BY_FORMAT = ("fp8_tflop_s", "fp4_tflop_s")
"""Peaks in other number formats that a GPU file may have: `list` shows them, no plan counts on them."""

KINDS = set(get_args(Kind))


@dataclass(frozen=True)
class Entry:
    """One file of the catalog: its name and what it holds."""

    name: str
    data: dict[str, Any]

    @property
    def released(self) -> str:
        """Date or month of its release, as ISO 8601 writes them."""
        return str(self.data["released"]["date"])


def model_names() -> list[str]:
    """Names of the models in the catalog, sorted."""
    return catalog.catalog_names("models")


def gpu_names() -> list[str]:
    """Names of the GPUs in the catalog, sorted."""
    return catalog.catalog_names("gpus")


def model_entry(name: str) -> Entry:
    """A model of the catalog with its source and published number of parameters."""
    return Entry(name, catalog.catalog_table("models", name))


def gpu_entry(name: str) -> Entry:
    """A GPU of the catalog with the sources of its figures."""
    return Entry(name, catalog.catalog_table("gpus", name))


def newest_first(entries: Iterable[Entry]) -> list[Entry]:
    """Entries by the date of their release; a month without a day is older than its days."""
    return sorted(sorted(entries, key=lambda entry: entry.name), key=lambda entry: entry.released, reverse=True)


def load_model(name_or_path: str) -> Model:
    """A model by its catalog name, or from a ``config.json`` or GGUF file.

    Raises:
        RequestError: There is no such model, or the file does not describe one.

    Example:
        >>> round(load_model("opt-66b").parameters / 1e9, 1)
        65.7
    """
    if name_or_path in model_names():
        return model_of(model_entry(name_or_path).data["config"], name_or_path, f"catalog/models/{name_or_path}.toml")
    path = Path(name_or_path)
    if _is_gguf(path):
        from tierloom.offload.gguf_header import read_gguf

        return read_gguf(path)
    if path.is_dir():
        path = path / "config.json"
    if path.suffix == ".json" or path.exists():
        with reading(path, "model", "give the config.json of a model"):
            config = _with_quantisation(_json(path), path)
            own = path.resolve().parent.name if path.name == "config.json" else path.stem
            return model_of(config, str(config.get("_name_or_path") or own), str(path))
    otherwise = "a config.json or .gguf file is given by its path"
    raise catalog.unknown(RequestError, "model", name_or_path, model_names(), otherwise)


def _is_gguf(path: Path) -> bool:
    """By its name, or by its first four bytes: what other tools keep has other names."""
    if path.suffix == ".gguf" or not path.is_file():
        return path.suffix == ".gguf"
    with path.open("rb") as file:
        return file.read(4) == b"GGUF"


def load_gpu(name_or_path: str) -> Gpu:
    """A GPU by its catalog name or from a TOML file.

    Raises:
        RequestError: There is no such GPU, or the file does not describe one.

    Example:
        >>> load_gpu("a10").memory_gb_s
        600.0
    """
    if name_or_path in gpu_names():
        return _gpu(gpu_entry(name_or_path).data, name_or_path, f"catalog/gpus/{name_or_path}.toml")
    path = Path(name_or_path)
    if path.suffix == ".toml" or path.exists():
        with reading(path, "GPU", "see the files of the catalog"):
            return _gpu(_toml(path), path.stem, str(path))
    otherwise = "a file is given by its path, and docs/offload.md has one to start from"
    raise catalog.unknown(RequestError, "GPU", name_or_path, gpu_names(), otherwise)


def _gpu(data: dict[str, Any], name: str, file: str) -> Gpu:
    flaws = Flaws()
    for unknown in sorted(set(data) - {*FIGURES, *BY_FORMAT, "title", "released"}):
        flaws.add(f"`{unknown}` is no figure of a GPU", f"there are {', '.join(FIGURES)}")
    figures = {figure: flaws.of(_figure, data, figure) or 0.0 for figure in FIGURES}
    flaws.refuse(file)
    return Gpu(name=name, **figures)


def _figure(data: dict[str, Any], figure: str) -> float:
    entry = data.get(figure)
    if not isinstance(entry, dict) or entry.get("kind") not in KINDS or "source" not in entry:
        shape = '{ value = 1.0, kind = "measured", source = "who" }'
        message = f"`{figure}` is missing or has no kind and source\nhint: write {figure} = {shape}"
        raise RequestError(message)
    value = entry.get("value")
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 < value < float("inf"):
        message = f"`{figure}` is {value!r}\nhint: it has to be a number above 0"
        raise RequestError(message)
    return float(value)


def _json(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as problem:
        message = f"{path}: line {problem.lineno}: {problem.msg}\nhint: give the config.json of a model"
        raise RequestError(message) from problem
    if not isinstance(data, dict):
        message = f"{path}: no table\nhint: give the config.json of a model"
        raise RequestError(message)
    return data


BESIDE = {"hf_quant_config.json": "modelopt", "quantize_config.json": "gptq", "quant_config.json": "awq"}
"""Files beside a config.json in which ModelOpt, AutoGPTQ and AutoAWQ say how they stored the weights."""


def _with_quantisation(config: dict[str, Any], file: Path) -> dict[str, Any]:
    """A config with what its method writes beside it, where the config itself says nothing of it."""
    found = next((name for name in BESIDE if file.with_name(name).exists()), None)
    if found is None or "quantization_config" in config:
        return config
    beside = _json(file.with_name(found))
    told = beside.get("quantization", beside)
    return (
        config | {"quantization_config": {"quant_method": BESIDE[found]} | told} if isinstance(told, dict) else config
    )


def _toml(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text(encoding="utf-8"))
