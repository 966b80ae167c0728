import sys

import pytest

tests = [f"numpy.{part}" for part in ("fft", "polynomial")]
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", "-W", "ignore", "--pyargs", *tests]))
