"""Files that real programs work on, made from fixed seeds or kept in `templates/work`."""

import random
from pathlib import Path

KEPT = Path(__file__).parent / "templates" / "work"


def numbers() -> bytes:
    """Lines with two numbers each."""
    dice = random.Random(1)  # noqa: S311 (no secret)
    return "".join(f"{dice.getrandbits(40):012} {dice.randrange(1000)}\n" for _ in range(600_000)).encode()


def prose() -> bytes:
    """Words, some far more often than others."""
    dice = random.Random(2)  # noqa: S311 (no secret)
    words = ["".join(dice.choices("etaoinshrdlu", k=dice.randint(2, 9))) for _ in range(4000)]
    return " ".join(words[int(4000 * dice.random() ** 3)] for _ in range(2_500_000)).encode()


MADE = {"numbers.txt": numbers, "prose.txt": prose}


def write(name: str, folder: Path) -> None:
    """Puts a file of this name into a folder."""
    (folder / name).write_bytes(MADE[name]() if name in MADE else (KEPT / name).read_bytes())
