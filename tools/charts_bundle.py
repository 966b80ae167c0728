"""Writes the scripts of the report's charts to stdout: Vega, Vega-Lite and Vega-Embed in one file.

They come out of the package vl-convert-python, which carries their sources; taking them out takes
seconds, so it is done once, when Tierloom is built, and the file travels beside the package.
"""

from __future__ import annotations

import sys

import vl_convert

VEGA_LITE = "6.4"
"""The version that the package has been tested with; the others follow from it."""

LICENCE = """\
/*
Vega {vega}, Vega-Lite {lite}, Vega-Embed {embed}, as bundled by vl-convert. Copyright (c) 2015-2025,
University of Washington Interactive Data Lab. BSD-3-Clause:

Redistribution and use in source and binary forms, with or without modification, are permitted provided
that the following conditions are met: 1. Redistributions of source code must retain the above copyright
notice, this list of conditions and the following disclaimer. 2. Redistributions in binary form must
reproduce the above copyright notice, this list of conditions and the following disclaimer in the
documentation and/or other materials provided with the distribution. 3. Neither the name of the copyright
holder nor the names of its contributors may be used to endorse or promote products derived from this
software without specific prior written permission.

THIS SOFTWARE IS PROVIDED BY THE COPYRIGHT HOLDERS AND CONTRIBUTORS "AS IS" AND ANY EXPRESS OR IMPLIED
WARRANTIES, INCLUDING, BUT NOT LIMITED TO, THE IMPLIED WARRANTIES OF MERCHANTABILITY AND FITNESS FOR A
PARTICULAR PURPOSE ARE DISCLAIMED. IN NO EVENT SHALL THE COPYRIGHT HOLDER OR CONTRIBUTORS BE LIABLE FOR
ANY DIRECT, INDIRECT, INCIDENTAL, SPECIAL, EXEMPLARY, OR CONSEQUENTIAL DAMAGES (INCLUDING, BUT NOT LIMITED
TO, PROCUREMENT OF SUBSTITUTE GOODS OR SERVICES; LOSS OF USE, DATA, OR PROFITS; OR BUSINESS INTERRUPTION)
HOWEVER CAUSED AND ON ANY THEORY OF LIABILITY, WHETHER IN CONTRACT, STRICT LIABILITY, OR TORT (INCLUDING
NEGLIGENCE OR OTHERWISE) ARISING IN ANY WAY OUT OF THE USE OF THIS SOFTWARE, EVEN IF ADVISED OF THE
POSSIBILITY OF SUCH DAMAGE.

Parts are D3 (ISC, copyright Mike Bostock), which grants the use, copying, modification and distribution
of the software for any purpose provided that its notice appears in all copies.
*/
"""


def main() -> None:
    """Prints the bundle, its licence first."""
    versions = {"vega": vl_convert.get_vega_version(), "embed": vl_convert.get_vega_embed_version(), "lite": VEGA_LITE}
    sys.stdout.write(LICENCE.format(**versions))
    sys.stdout.write(vl_convert.javascript_bundle(vl_version=VEGA_LITE))


if __name__ == "__main__":
    main()
