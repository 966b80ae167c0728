"""The documentation as a site: every document of the repository, and the Python API from its docstrings.

    make site
"""

from __future__ import annotations

from importlib import metadata

project = "Tierloom"
author = "the Tierloom authors"
release = metadata.version("tierloom")
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
root_doc = "docs/site/index"
include_patterns = ["*.md", "docs/**", "examples/README.md", "examples/offload/README.md", "python/tierloom/catalog/README.md", "workloads/README.md", "crates/*/README.md", "tests/recordings/README.md", "benches/counts/README.md"]
suppress_warnings = ["myst.header"]
myst_heading_anchors = 3
html_theme = "furo"
html_title = f"Tierloom {release}"
autodoc_typehints = "description"
autodoc_member_order = "bysource"
