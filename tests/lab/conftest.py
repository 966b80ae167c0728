"""What tests of the lab share: whether a guest can be started here at all."""

from __future__ import annotations

import pytest

from tierloom.errors import LabError
from tierloom.lab import image, qemu
from tierloom.lab.guest import cache_folder


@pytest.fixture(scope="session")
def needs_lab() -> None:
    """Skips where QEMU is missing or its packages cannot be had."""
    try:
        qemu.find()
        image.build(cache_folder())
    except LabError as error:
        pytest.skip(str(error).replace("\n", "; "))
