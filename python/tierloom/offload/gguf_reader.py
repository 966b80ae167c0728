"""The package's reader of GGUF files, for their headers alone: what is missing of the weights does not matter.

`gguf_header` uses it. Files of a header without weights are common, as are downloads that are not done.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tierloom.errors import RequestError

if TYPE_CHECKING:
    from pathlib import Path


def open_header(path: Path) -> Any:  # noqa: ANN401 (the package has no types)
    """A reader of a file's header.

    Raises:
        RequestError: The package is not installed, or the header is cut.
    """
    try:
        from gguf import GGUFReader
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

    return HeaderReader(path)


def missing_weights(reader: Any) -> int:  # noqa: ANN401 (the package has no types)
    """How many bytes of weights the header announces behind the end of its file."""
    end = max((tensor.data_offset + tensor.n_bytes for tensor in reader.tensors), default=0)
    return max(0, end - len(reader.data))
