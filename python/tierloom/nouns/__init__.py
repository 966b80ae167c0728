"""Machine, Profile, Plan and Workload: what the verbs read and write, each with one file format.

A noun is checked once, by the Rust core, when it is read; afterwards it is plain data that does not
change. ``data`` is the document, ``text`` what the file says.
"""

from tierloom.nouns.machine import Curve, Machine
from tierloom.nouns.plan import FIRST_TOUCH, Plan, action_text
from tierloom.nouns.profile import Profile
from tierloom.nouns.workload import Workload

__all__ = ["FIRST_TOUCH", "Curve", "Machine", "Plan", "Profile", "Workload", "action_text"]
