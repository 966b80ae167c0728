"""How a pool writes down what an array is: its element type, its order and its shape, as text."""

from __future__ import annotations

import numpy as np

from tierloom.errors import PoolError, RequestError


def describe(dtype: np.dtype, shape: tuple[int, ...]) -> str:
    """The text of an element type and a shape, such as ``<f8 3x4``; a scalar has no shape.

    Raises:
        RequestError: The elements are Python objects or records, which mean nothing after a restart.
    """
    if dtype.hasobject or dtype.fields is not None:
        message = f"elements of type {dtype} cannot live in a pool\nhint: use numbers, booleans or fixed-size text"
        raise RequestError(message)
    return f"{dtype.str} {'x'.join(map(str, shape))}".strip()


def understand(text: str) -> tuple[np.dtype, tuple[int, ...]]:
    """Element type and shape of such a text.

    Raises:
        PoolError: The text is none of ours.
    """
    name, _, shape = text.partition(" ")
    try:
        dtype = np.dtype(name)
        sizes = tuple(int(size) for size in shape.split("x")) if shape else ()
    except (TypeError, ValueError, SyntaxError) as error:
        message = f"`{text}` describes no array\nhint: was it written by another program?"
        raise PoolError(message) from error
    return dtype, sizes
