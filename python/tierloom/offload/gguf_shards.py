"""The files that one GGUF model is in: all shards of a split one, or why a file is no language model.

`gguf_header` uses it. ``llama-gguf-split`` writes ``NAME-00001-of-00004.gguf`` and so on; the first has the keys, each
has a part of the tensors and says which one it is (``split.no``, from none) and of how many (``split.count``).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tierloom.errors import RequestError
from tierloom.offload.gguf_reader import missing_weights

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NAME = re.compile(r"(?P<start>.*)-(?P<number>\d{5})-of-(?P<count>\d{5})\.gguf")

MODEL = "the file of the language model"

NO_MODELS = {
    "adapter": ("an adapter (LoRA)", f"give {MODEL} that it adapts"),
    "imatrix": ("an importance matrix", f"give {MODEL} that it was computed for"),
    "mmproj": ("the projector of images or sound of a model (mmproj)", f"give {MODEL} beside it"),
}
"""Values of `general.type` that are no model: what the file is, and what to give."""

PROJECTORS = ("clip", "mmproj")
"""Architectures of projectors."""


@dataclass(frozen=True)
class Shards:
    """A model's files.

    Attributes:
        first: The reader of the file that has the keys.
        tensors: Those of all files.
        missing: Bytes of weights that are not there.
    """

    first: Any
    tensors: list[Any]
    missing: int


def opened(path: Path, reader: Callable[[Path], Any]) -> Shards:
    """All files of the model whose first one is given.

    Args:
        path: The file.
        reader: Opens one.

    Raises:
        RequestError: It is another shard than the first, one is missing, or it holds no language model.
    """
    first = reader(path)
    _refuse_what_is_no_model(path, first)
    count = _number(first, "split.count", 1)
    readers = [first, *(_shard(path, reader, number, count) for number in range(1, count))]
    tensors = [tensor for each in readers for tensor in each.tensors]
    said = _number(first, "split.tensors.count", len(tensors))
    if said != len(tensors):
        message = (
            f"{path}: its {count} shards have {len(tensors)} tensors, and `split.tensors.count` is {said}\n"
            "hint: the shards are not of one model: fetch them again"
        )
        raise RequestError(message)
    if not tensors:
        message = f"{path}: it has no tensors, only keys and words\nhint: give {MODEL}"
        raise RequestError(message)
    return Shards(first, tensors, sum(map(missing_weights, readers)))


def _refuse_what_is_no_model(path: Path, reader: Any) -> None:  # noqa: ANN401 (the package has no types)
    number, count = _number(reader, "split.no", 0), _number(reader, "split.count", 1)
    if number:
        message = f"{path}: shard {number + 1} of {count}; the first has the keys\nhint: give {_name(path, 1, count)}"
        raise RequestError(message)
    kind = _text(reader, "general.type")
    kind = "mmproj" if _text(reader, "general.architecture") in PROJECTORS else kind
    if kind in NO_MODELS:
        what, give = NO_MODELS[kind]
        message = f"{path}: {what}, no language model\nhint: {give}"
        raise RequestError(message)


def _shard(path: Path, reader: Callable[[Path], Any], number: int, count: int) -> Any:  # noqa: ANN401
    beside = path.with_name(_name(path, number + 1, count))
    if not beside.exists():
        message = f"{path}: the first of {count} shards, and there is no {beside.name}\nhint: put it beside the first"
        raise RequestError(message)
    found = reader(beside)
    told = (_number(found, "split.no", 0), _number(found, "split.count", 1))
    if told != (number, count):
        message = (
            f"{beside}: shard {told[0] + 1} of {told[1]} by its keys, {number + 1} of {count} by its name\n"
            "hint: fetch it again"
        )
        raise RequestError(message)
    return found


def _name(path: Path, number: int, count: int) -> str:
    """The file name of a shard of the same model."""
    found = NAME.fullmatch(path.name)
    if found is None:
        message = (
            f"{path}: a shard of {count} under a name that the others cannot be found by\n"
            f"hint: call it NAME-{1:05}-of-{count:05}.gguf, as llama-gguf-split does"
        )
        raise RequestError(message)
    return f"{found['start']}-{number:05}-of-{count:05}.gguf"


def _number(reader: Any, key: str, default: int) -> int:  # noqa: ANN401 (the package has no types)
    found = reader.get_field(key)
    return default if found is None else int(found.contents())


def _text(reader: Any, key: str) -> str:  # noqa: ANN401 (the package has no types)
    found = reader.get_field(key)
    return "" if found is None else str(found.contents())
