"""Whether a name or pattern of a ``quantization_config`` means a module of a model.

`quantisation` uses it. Checkpoints write the same module under several prefixes (``model.layers.3.mlp``,
``language_model.model.layers.3.mlp``), so names are compared from ``layers`` on.
"""

from __future__ import annotations

import re
from functools import cache

REGULAR = "re:"
"""What compressed-tensors and GPTQModel begin a regular expression with."""

PREFIXES = ("model.", "model.language_model.", "language_model.model.", "backbone.", "")
"""What stands before ``layers`` in the checkpoints that have been seen."""

CLASSES = {"Linear", "FusedMoE"}
"""Classes of modules that stand for all matrices of layers."""


def means(pattern: str, name: str) -> bool:
    """Whether a pattern means a module, or one that holds it.

    Args:
        pattern: A name, a name with stars, or ``re:`` and a regular expression.
        name: As `model_parts.named` calls it, ``layers.3.mlp.down_proj``; or ``lm_head``.

    Raises:
        ValueError: It is no regular expression.

    Example:
        >>> means("model.layers.3.mlp", "layers.3.mlp.down_proj"), means("re:.*mlp.*", "layers.3.mlp.down_proj")
        (True, True)
        >>> means("model.layers.3.mlp.gate", "layers.3.mlp.gate_proj")
        False
    """
    if pattern in CLASSES:
        return name.startswith("layers.")
    if pattern.startswith(REGULAR):
        expression = _compiled(pattern.removeprefix(REGULAR))
        prefixes = PREFIXES if name.startswith("layers.") else ("",)
        return any(expression.match(prefix + name) for prefix in prefixes)
    return _named(pattern).search(name) is not None


@cache
def _compiled(expression: str) -> re.Pattern[str]:
    try:
        return re.compile(expression)
    except re.error as problem:
        message = f"{expression!r} is no regular expression"
        raise ValueError(message) from problem


@cache
def _named(pattern: str) -> re.Pattern[str]:
    """Whole words of a dotted name, a star for any; what stands before ``layers`` does not matter."""
    _, layers, rest = pattern.rpartition("layers.")
    own = layers + rest if layers else pattern
    words = re.escape(own).replace(r"\*", ".*")
    return re.compile(rf"(?:^|\.){words}(?:\.|$)")
