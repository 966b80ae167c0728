"""Debian's packages: which ones serve what here, and where this machine gets them.

``packages.toml`` is the one list. `doctor` and the lab read it, as do the scripts that set a machine up
before anything is built: so these modules import nothing but the standard library.
"""
