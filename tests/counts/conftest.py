"""The benches are no package that is installed: they are found from the repository's root."""

import sys

from support import ROOT

sys.path.insert(0, str(ROOT))
