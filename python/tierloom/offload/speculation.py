"""Speculative decoding: a draft proposes tokens, one step of the model verifies them. A noun.

Leviathan et al. (arXiv 2211.17192): of N proposed tokens, each accepted with probability a independently
of the others, a step yields (1 - a^(N+1)) / (1 - a) tokens on average, its own one included.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tierloom.errors import RequestError

if TYPE_CHECKING:
    from tierloom.offload.gpu import Gpu
    from tierloom.offload.model import Model

MOST = 64
"""Most tokens of a draft."""


@dataclass(frozen=True, kw_only=True)
class Speculation:
    """What is proposed in a step.

    Attributes:
        tokens: Tokens of a draft, N; 0 for no speculation.
        acceptance: Probability that a proposed token is accepted, a.
        draft: The model that proposes, on the GPU; none where proposals cost nothing (n-grams of the prompt).
    """

    tokens: int = 0
    acceptance: float = 0.0
    draft: Model | None = None

    @property
    def verified(self) -> int:
        """Tokens that a step works on, a sequence."""
        return self.tokens + 1

    @property
    def expected(self) -> float:
        """Tokens that a step yields on average, a sequence.

        Example:
            >>> Speculation(tokens=1, acceptance=0.5).expected
            1.5
        """
        return sum(self.acceptance**power for power in range(self.tokens + 1))

    def draft_s(self, gpu: Gpu, batch: float) -> float:
        """Seconds in which the GPU drafts for `batch` sequences: N times products and a read of the weights."""
        if self.draft is None:
            return 0.0
        read = self.draft.weight_bytes / (gpu.memory_gb_s * 1e9)
        return self.tokens * (batch * self.draft.flop_per_token / gpu.decode_flop_s + read)

    @property
    def draft_bytes(self) -> float:
        """GPU memory for the draft's weights."""
        return self.draft.weight_bytes if self.draft else 0.0


NONE = Speculation()
"""One token a step."""


def speculation_of(text: str | None, draft: Model | None = None) -> Speculation:
    """Reads ``N:ACCEPTANCE``, such as ``4:0.7``.

    Raises:
        RequestError: The text does not say so, or there is a draft and no text.
    """
    if text is None:
        if draft is not None:
            message = f"{draft.name} drafts, but how much is not said\nhint: add for example --speculative 4:0.7"
            raise RequestError(message)
        return NONE
    tokens, _, acceptance = text.partition(":")
    try:
        found = Speculation(tokens=int(tokens), acceptance=float(acceptance), draft=draft)
    except ValueError:
        found = NONE
    if not (1 <= found.tokens <= MOST and 0.0 <= found.acceptance <= 1.0):
        message = (
            f"`{text}` is no speculation\nhint: write the tokens of a draft (at most {MOST}) and the share that is "
            "accepted: 4:0.7"
        )
        raise RequestError(message)
    return found
