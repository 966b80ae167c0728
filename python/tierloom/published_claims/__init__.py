"""What was published, side by side with what the models say. A face.

:mod:`ledger` holds the claims, :mod:`computing` what computes ours, :mod:`running` brings them together.
"""

from tierloom.published_claims.ledger import Claim, Study, claims, studies
from tierloom.published_claims.runs import Result, reproduce

__all__ = ["Claim", "Result", "Study", "claims", "reproduce", "studies"]
