"""Reading the fields of a ``config.json`` with words for what is missing.

`architectures` uses it; it knows nothing of any architecture.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tierloom.errors import RequestError
from tierloom.offload.class_defaults import DEFAULTS
from tierloom.readers import MALFORMED, Flaws

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tierloom.offload.model import Model

SIZE_WORDS = (
    "attention_heads",
    "channels",
    "expert",
    "head_dim",
    "intermediate",
    "key_value_heads",
    "lora_rank",
    "num_heads",
)
"""Parts of key names that change a model's size: a key with one of them that nobody read is an error."""

NOT_SIZES = (
    "num_experts_per_tok",
    "experts_per_token",
    "n_group",
    "expert_parallel",
    "router",
    "norm_topk",
    "output_",
    "ep_size",
    "decoder_sparse",
    "topk",
    "top_k_experts",
    "layer_types",
    "num_nextn",
    "shared_expert_overlap",
    "mtp_use_dedicated",
)
"""Names with such words that do not change how many bytes the weights take."""


MOST = 10**9
"""Layers, widths, heads, words: a thousand times what the largest of them is in any model."""


def _whole(value: float, least: int) -> bool:
    return math.isfinite(value) and value == int(value) and value >= least


def _alike(value: object) -> object:
    """A list of one number for each layer, all the same, is that number (Gemma 3n)."""
    same = isinstance(value, list) and len({*map(str, value)}) == 1
    return value[0] if same and isinstance(value, list) else value


class Fields:
    """The fields of one ``config.json``; remembers which were asked for, and what is wrong with them.

    Args:
        config: The document.
        file: What errors should call it.
    """

    def __init__(self, config: Mapping[str, object], file: str) -> None:
        self.config = config
        self.file = file
        self.read: set[str] = set()
        self.defaults = DEFAULTS.get(str(config.get("model_type")), {})
        self.assumed: dict[str, int] = {}
        self.flaws = Flaws()

    @property
    def guesses(self) -> tuple[str, ...]:
        """What the file leaves out and the published class has, one sentence."""
        if not self.assumed:
            return ()
        told = ", ".join(f"`{name}` {value}" for name, value in self.assumed.items())
        return (f"not in the file, taken from the class of `model_type` {self.config['model_type']!r}: {told}",)

    def count(self, *names: str, least: int = 1) -> int:
        """A whole number under the first of `names` that is there.

        Where none of them is, or it is no whole number of at least `least`, that is a flaw, and some number stands in
        for it until `model` refuses the file.
        """
        for name in names:
            value = _alike(self._value(name))
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int | float) or not _whole(value, least):
                return self._refused(f"`{name}` is {value!r}", f"it has to be a whole number of at least {least}")
            if value > MOST:
                return self._refused(f"`{name}` is {value:g}", f"no model has more than {MOST:.0e} of anything")
            return int(value)
        default = self._default(*names)
        if default is None:
            return self._refused(f"there is no `{names[0]}`", "add it, as the model's own config.json has it")
        return default

    def count_or(self, default: int, *names: str) -> int:
        """A whole number of at least 0, or `default` when none of `names` is there or it is null."""
        known = [name for name in names if self._value(name) is not None]
        if known:
            return self.count(*known, least=0)
        published = self._default(*names)
        return default if published is None else published

    def passed(self, *names: str) -> None:
        """Fields that say a size which this architecture does not have, or has by others."""
        self.read.update(names)

    def _default(self, *names: str) -> int | None:
        """What the published class has under one of the names, where the file says nothing, not even null."""
        name = next((name for name in names if name in self.defaults and name not in self.config), None)
        if name is None:
            return None
        self.assumed[name] = self.defaults[name]
        return self.defaults[name]

    def flag(self, name: str, *, default: bool = False) -> bool:
        """A yes or no."""
        value = self._value(name)
        return default if value is None else bool(value)

    def word(self, name: str, default: str) -> str:
        """A piece of text."""
        value = self._value(name)
        return default if value is None else str(value)

    def words(self, name: str) -> list[str]:
        """A list of pieces of text; empty when there is none."""
        value = self._value(name)
        return [str(each) for each in value] if isinstance(value, list) else []

    def none(self, name: str) -> None:
        """A size that no model of the catalog has yet: one that has it would be counted wrong."""
        if self.count_or(0, name):
            self.flaws.add(f"`{name}` is {self._value(name)!r}, which cannot be counted", "use a GGUF file")

    def table(self, name: str) -> Mapping[str, object]:
        """A table within the table; empty when there is none."""
        value = self._value(name)
        return value if isinstance(value, dict) else {}

    def model(self, family: Callable[[Fields, str], Model], name: str) -> Model:
        """What an architecture makes of the fields.

        Raises:
            RequestError: A field is missing or wrong, or there is one that changes a model's size and that nobody
                read: the size that was counted would be wrong.
        """
        try:
            found = family(self, name)
        except (RequestError, *MALFORMED):
            self.flaws.refuse(self.file)
            raise
        self._find_unread_sizes()
        self.flaws.refuse(self.file)
        return found

    def _find_unread_sizes(self) -> None:
        kind = self.config.get("model_type")
        for name, value in self.config.items():
            if name in self.read or isinstance(value, dict | list | str) or not value:
                continue
            if any(word in name for word in SIZE_WORDS) and not any(word in name for word in NOT_SIZES):
                self.flaws.add(
                    f"`{name}` is no field of `model_type` {kind!r}: the size would be counted wrong",
                    f"set `model_type` to the architecture that has `{name}`, or remove the field",
                )

    def _refused(self, problem: str, hint: str) -> int:
        self.flaws.add(problem, hint)
        return 1

    def _value(self, name: str) -> object:
        self.read.add(name)
        return self.config.get(name)
