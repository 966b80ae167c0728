"""What was published, side by side with what the models say. A face.

:mod:`ledger` holds the claims, :mod:`computing` what computes ours, :mod:`running` brings them together.
"""

from tierloom.reproducing.ledger import Claim, Document, claims, documents
from tierloom.reproducing.running import Result, reproduce

__all__ = ["Claim", "Document", "Result", "claims", "documents", "reproduce"]
