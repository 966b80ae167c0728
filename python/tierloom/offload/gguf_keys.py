"""The keys of a GGUF header: numbers, and lists of a number for each layer.

`gguf_header` and `gguf_caches` use it. Names of keys are those of the GGUF specification and of llama.cpp's
`src/llama-arch.cpp`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tierloom.errors import RequestError
from tierloom.offload.fields import MOST

if TYPE_CHECKING:
    from pathlib import Path

AGAIN = "\nhint: write the file again with a current llama.cpp"


@dataclass(frozen=True)
class Header:
    """The keys of one architecture in a header.

    Attributes:
        reader: The package's reader.
        path: The file, for errors.
        family: Its architecture, which its keys begin with.
    """

    reader: Any
    path: Path
    family: str

    @property
    def layers(self) -> int:
        """Layers of the model, without those that predict several tokens at once."""
        return max(1, self.count("block_count") - self.count("nextn_predict_layers", 0))

    def count(self, key: str, default: int | None = None) -> int:
        """A number of things: at least one, unless the key may be left out as none; the most of a list.

        Raises:
            RequestError: The key is missing, or no such number.
        """
        value = self.value(key, default)
        value = max(value, default=None) if isinstance(value, list) else value
        return self._whole(key, value, 0 if default == 0 else 1)

    def each(self, key: str, default: int) -> list[int]:
        """A number for each layer: the list of the key, or the same for all.

        Raises:
            RequestError: One of them is no such number, or there are fewer than layers.
        """
        value = self.value(key, default)
        listed = value if isinstance(value, list) else [value] * self.layers
        if len(listed) < self.layers:
            message = f"{self.path}: `{self.family}.{key}` has {len(listed)} numbers for {self.layers} layers{AGAIN}"
            raise RequestError(message)
        return [self._whole(key, each, 0) for each in listed[: self.layers]]

    def has(self, key: str) -> bool:
        """Whether the header says anything under the key."""
        return self.reader.get_field(f"{self.family}.{key}") is not None

    def value(self, key: str, default: int | None = None) -> Any:  # noqa: ANN401 (the package has no types)
        """What the header says, or the default.

        Raises:
            RequestError: It says nothing, and there is no default.
        """
        found = self.reader.get_field(f"{self.family}.{key}")
        if found is not None:
            return found.contents()
        if default is None:
            message = f"{self.path}: there is no `{self.family}.{key}`{AGAIN}"
            raise RequestError(message)
        return default

    def _whole(self, key: str, value: Any, least: int) -> int:  # noqa: ANN401 (the package has no types)
        if value is None or isinstance(value, str | float) or not least <= int(value) <= MOST:
            message = (
                f"{self.path}: `{self.family}.{key}` is {repr(value)[:40]}\n"
                f"hint: it has to be a whole number from {least} to {MOST:.0e}"
            )
            raise RequestError(message)
        return int(value)
