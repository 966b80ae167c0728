"""How long prompts and answers are: the moments of a distribution that the engines need. A noun.

`length_files` reads what a person types into one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

DEVIATIONS = 2.0
"""Standard deviations above the mean that memory is kept for: enough in 97 of 100 moments by the normal law."""


@dataclass(frozen=True, kw_only=True)
class Lengths:
    """Tokens of a prompt, or of an answer.

    Attributes:
        mean: Mean.
        square: Mean of the squares.
        shortest: Fewest tokens.
        longest: Most tokens.
    """

    mean: float
    square: float
    shortest: int
    longest: int

    @property
    def variance(self) -> float:
        """Mean square of what a length is off the mean."""
        return max(0.0, self.square - self.mean**2)

    @property
    def squares(self) -> float:
        """Mean of the squares over the square of the mean: 1 where all lengths are the same."""
        return self.square / self.mean**2

    @property
    def text(self) -> str:
        """As tables say it."""
        if self.shortest == self.longest:
            return str(self.longest)
        return f"{self.shortest} to {self.longest} (mean {self.mean:.0f})"


def fixed(tokens: int) -> Lengths:
    """All of one length."""
    return Lengths(mean=tokens, square=float(tokens) ** 2, shortest=tokens, longest=tokens)


def uniform(low: int, high: int) -> Lengths:
    """Any whole number from `low` to `high`, each as often.

    Example:
        >>> uniform(1, 3).square == (1 + 4 + 9) / 3
        True
    """
    mean, count = (low + high) / 2.0, high - low + 1
    return Lengths(mean=mean, square=mean**2 + (count**2 - 1) / 12.0, shortest=low, longest=high)


def of(lengths: Sequence[int]) -> Lengths:
    """Lengths that were seen, each as often as it is listed."""
    count = len(lengths)
    square = math.fsum(length**2 for length in lengths) / count
    return Lengths(mean=sum(lengths) / count, square=square, shortest=min(lengths), longest=max(lengths))


@dataclass(frozen=True, kw_only=True)
class Variation:
    """How requests differ from the mean one; the defaults say that they do not.

    Attributes:
        prompt_squares: Mean square of a prompt's length over the square of its mean.
        answer_squares: The same of answers.
        variance: Of a request's tokens, prompt and answer together.
        longest: Tokens of the longest request; none where all are the same.
    """

    prompt_squares: float = 1.0
    answer_squares: float = 1.0
    variance: float = 0.0
    longest: int | None = None

    def reserved(self, mean: float, users: int | None) -> float:
        """Tokens that memory is kept for, a request: of many users not all are long at once.

        The sum of `users` independent lengths is some deviations above its mean at most, and never above the
        longest of each; without a number of users the mean.
        """
        if self.longest is None or users is None:
            return mean
        return min(float(self.longest), mean + DEVIATIONS * math.sqrt(self.variance / users))

    def prompts(self, mean: float) -> tuple[tuple[float, float], ...]:
        """Two lengths with the mean and the mean square of all prompts, and the share of each.

        What grows with the square of a length, or with the length, comes out exactly; what changes from one to the
        other, as attention to a window does, nearly.

        Example:
            >>> Variation(prompt_squares=1.25).prompts(100)
            ((50.0, 0.5), (150.0, 0.5))
        """
        off = mean * math.sqrt(max(0.0, self.prompt_squares - 1.0))
        if off == 0.0:
            return ((mean, 1.0),)
        below = min(1.0, mean / off)  # no length is below 0
        above = 1.0 / below
        return ((mean - off * below, above / (above + below)), (mean + off * above, below / (above + below)))


ALIKE = Variation()
"""All requests are the same."""


def variation(prompt: Lengths, answer: Lengths) -> Variation:
    """The variation of requests whose prompt and answer are independent of each other."""
    varies = prompt.variance + answer.variance
    return Variation(
        prompt_squares=prompt.squares,
        answer_squares=answer.squares,
        variance=varies,
        longest=prompt.longest + answer.longest if varies > 0.0 else None,
    )
