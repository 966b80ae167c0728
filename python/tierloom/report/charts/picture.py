"""What all charts share: their colours, their style, and how one is written.

Every chart is drawn the same way twice: no dates, no random ids, so that a report can be kept in
git. Colours are those of Okabe and Ito, which readers with any colour vision tell apart; what
matters is also said by line style, weight or a label beside it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tierloom import outputs
from tierloom.errors import RequestError
from tierloom.extras import brought_by

with brought_by("report"):
    import matplotlib as mpl

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure

OURS = "#D55E00"
OTHERS = "#7F8C9A"
INK = "#22303C"
FAINT = "#D9DEE3"
LINES = ("#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
STYLE: dict[Any, Any] = {
    "svg.hashsalt": "tierloom",
    "svg.fonttype": "path",
    "font.family": "DejaVu Sans",
    "font.size": 9.0,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10.0,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.grid": True,
    "grid.color": FAINT,
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "xtick.color": INK,
    "ytick.color": INK,
}


def save(figure: Figure, path: Path) -> None:
    """Writes a picture in the format that the path's ending names.

    Raises:
        RequestError: The ending names no format that can be drawn.
    """
    endings = (".png", ".svg", ".pdf")
    if path.suffix not in endings:
        message = f"{path}: `{path.suffix}` is no kind of picture\nhint: let the name end with {', '.join(endings)}"
        raise RequestError(message)
    dateless = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}, ".png": {}}[path.suffix]
    with mpl.rc_context(STYLE), outputs.whole(path) as part:
        figure.savefig(part, dpi=160, metadata=dateless)
