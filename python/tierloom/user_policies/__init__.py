"""Policies of one's own, in Python: where data is placed, and which pages move while a program runs.

A policy is asked for by what stands for it in a list of policies: ``FILE.py:NAME``, the name of an entry point of an
installed package, or from Python the function or class itself.

- A **placement policy** (group ``tierloom.placement_policies``) is a function from a :class:`PlacementQuestion` to the
  place of each object, in the words that name a policy elsewhere: ``{"rank": "bind:ldram", "edges":
  "interleave:ldram+cxl"}``. What it does not name is left to first touch.
- A **migration policy** (group ``tierloom.migration_policies``) is a class whose objects ``look`` at a
  :class:`MigrationView` every ``period_s`` and return the moves: ``(group, from, to, pages)``. Its arguments are its
  knobs.

A placement policy that has no answer raises :class:`tierloom.errors.PlacementError` with the reason, which then stands
in the table beside the other policies' times. Any other exception ends the request, with the line that raised it.
"""

from __future__ import annotations

from tierloom.user_policies.lookup import MIGRATION, PLACEMENT, UserPolicy, digest, policies, policy, written
from tierloom.user_policies.migration import Migrating, MigrationView, Move, migrating
from tierloom.user_policies.placement import PlacementQuestion, place, placing

__all__ = [
    "MIGRATION",
    "PLACEMENT",
    "Migrating",
    "MigrationView",
    "Move",
    "PlacementQuestion",
    "UserPolicy",
    "digest",
    "migrating",
    "place",
    "placing",
    "policies",
    "policy",
    "written",
]
