"""The shapes of the documents that the core returns and that ``--json`` prints.

Keys carry their unit: ``_bytes``, ``_ns``, ``_s``, ``_gb_s`` (GB is 10^9 bytes). They are those of
the Rust nouns in ``crates/model``, where each is described.
"""

# ruff: noqa: F403 (all of these modules is shapes)

from tierloom.schema.documents import *
from tierloom.schema.machines import *
from tierloom.schema.recordings import *
from tierloom.schema.runs import *
from tierloom.schema.simulations import *
from tierloom.schema.validations import *
