"""Writes small GGUF files for tests."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

Shapes = Mapping[str, tuple[int, ...]]


def write(file: Path, family: str, keys: Mapping[str, Any], shapes: Shapes) -> None:
    """A file of these keys, which get the architecture's name where they have no room of their own, and tensors."""
    import gguf
    import numpy as np

    writer = gguf.GGUFWriter(file, family)
    for key, value in keys.items():
        add = {list: writer.add_array, str: writer.add_string}.get(type(value), writer.add_uint32)
        add(key if key.startswith(("general.", "split.")) else f"{family}.{key}", value)
    for name, shape in shapes.items():
        writer.add_tensor(name, np.zeros(shape, dtype=np.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
