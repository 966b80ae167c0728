"""The package's reader of GGUF files, for their headers alone: what is missing of the weights does not matter.

`gguf_header` uses it. Files of a header without weights are common, as are downloads that are not done.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tierloom.errors import RequestError

if TYPE_CHECKING:
    from pathlib import Path


TYPE = 4
"""Where the package keeps the type of a tensor's elements, among the parts of its field."""


def open_header(path: Path) -> Any:  # noqa: ANN401 (the package has no types)
    """A reader of a file's header.

    Raises:
        RequestError: The package is not installed, the header is cut, or it has types that are not known.
    """
    try:
        from gguf import GGMLQuantizationType, GGUFReader
    except ImportError as problem:
        message = f"{path}: reading it takes the package `gguf`\nhint: pip install '.[gguf]'"
        raise RequestError(message) from problem
    import numpy as np

    class HeaderReader(GGUFReader):
        def _get(self, offset: int, dtype: Any, count: int = 1, override_order: Any = None) -> Any:  # noqa: ANN401
            if offset + np.dtype(dtype).itemsize * int(count) <= len(self.data):
                return super()._get(offset, dtype, count, override_order)
            # Set once the header is read; from there on only weights follow, which nobody looks at.
            if "data_offset" in vars(self):
                return np.broadcast_to(np.zeros((), dtype), int(count))
            message = (
                f"{path}: its header is cut off: it announces more than the {len(self.data):,} bytes that are here\n"
                "hint: fetch the file again; its header is enough, without the weights"
            )
            raise RequestError(message)

        def _build_tensors(self, start_offs: int, fields: list[Any]) -> None:
            known = {int(kind) for kind in GGMLQuantizationType}
            for field in fields:
                number = int(field.parts[TYPE][0])
                if number not in known:
                    message = (
                        f"{path}: `{field.name}` is of type {number}, which the package `gguf` does not know: one of a "
                        "fork of llama.cpp, or newer than the package\n"
                        "hint: give a file that llama.cpp itself reads, or try: pip install --upgrade gguf"
                    )
                    raise RequestError(message)
            super()._build_tensors(start_offs, fields)

    return HeaderReader(path)


def missing_weights(reader: Any) -> int:  # noqa: ANN401 (the package has no types)
    """How many bytes of weights the header announces behind the end of its file."""
    end = max((tensor.data_offset + tensor.n_bytes for tensor in reader.tensors), default=0)
    return max(0, end - len(reader.data))
