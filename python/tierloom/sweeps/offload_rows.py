"""The four verbs of ``offload`` as rows; their engines, and SciPy with them, are loaded when they are asked.

A point's parameters are those of the function of `tierloom.offload`, but for what no study file can write.
"""

from __future__ import annotations

import importlib
import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tierloom.nouns import Machine
from tierloom.sweeps.rows import by_name, picked, signature
from tierloom.what_if import scaled

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tierloom.offload.documents import CpuDoc, InferDoc, ServeDoc, TrainDoc
    from tierloom.sweeps.rows import Row

UNWRITTEN = ("margins", "ratios")
"""Parameters that are no text or number."""

GOALS = ("users", "batch", "ttft", "tokens_per_s")
"""Goals of `offload.infer`; a study that names none asks for throughput, one plan a point and not a table."""


@dataclass(frozen=True)
class Asked:
    """A function of `tierloom.offload` whose answer becomes a row.

    Attributes:
        name: The function's.
        row: From the answer's document to a row.
    """

    name: str
    row: Callable[[Any], Row]

    @property
    def __signature__(self) -> inspect.Signature:
        """The function's parameters and ``scale``; a study compares with no other policy unless it says so."""
        plain = [
            each.replace(default="") if each.name == "compare" else each
            for each in inspect.signature(self._function()).parameters.values()
        ]
        return signature([*plain, inspect.Parameter("scale", inspect.Parameter.KEYWORD_ONLY)], UNWRITTEN)

    def __call__(self, *, machine: Machine, scale: Mapping[str, float], **asked: Any) -> Row:  # noqa: ANN401
        """Asks it on a machine whose figures are scaled."""
        if self.name == "infer" and all(asked.get(goal) is None for goal in GOALS):
            asked["throughput"] = True
        if "compare" in self.__signature__.parameters:
            asked.setdefault("compare", "")
        answer = self._function()(machine=scaled(machine, scale), **asked)
        return self.row(answer if isinstance(answer, dict) else answer.data)

    def _function(self) -> Callable[..., Any]:
        function: Callable[..., Any] = getattr(importlib.import_module("tierloom.offload"), self.name)
        return function


def _infer(answer: InferDoc) -> Row:
    """Throughput of a served model, its batch, and what each place holds."""
    keys = "tokens_s low_tokens_s high_tokens_s batch gpu_batch prefill_s decode_step_s prefill_bound decode_bound"
    return {
        **_renamed(picked(answer, *keys.split()), batch="best_batch"),
        **_plain(answer["users"], "tokens_s_user", "ttft_s", "ttft_alone_s"),
        **by_name(answer["places"], "place", "weights_bytes", "kv_bytes"),
        **by_name(answer["policies"], "policy", "tokens_s"),
    }


def _train(answer: TrainDoc) -> Row:
    """Time of a training step, and where the optimizer's states are."""
    ours, *others = answer["policies"]
    return {
        **_plain(ours, "step_s", "tokens_s"),
        **_renamed(picked(answer, "batch", "gpu_bytes", "host_bytes"), batch="best_batch"),
        **{f"{tier}.held_bytes": held for tier, held in ours.get("held_bytes", {}).items()},
        **by_name(others, "policy", "step_s"),
    }


def _serve(answer: ServeDoc) -> Row:
    """What an idle session waits for its cache, and how many each memory keeps."""
    return {
        **picked(answer, "mean_s", "recompute_s", "session_bytes", "break_even_gb_s"),
        **by_name(answer["tiers"], "tier", "sessions", "fetch_s", "worth"),
    }


def _cpu(answer: CpuDoc) -> Row:
    """Tokens per second of the best ratio of interleaving."""
    (best,) = [row for row in answer["ratios"] if row["pages"] == answer["best"]]
    ratio = ":".join(f"{pages}" for pages in answer["best"].values())
    return {"ratio": ratio, **_plain(best, "tokens_s", "gb_s", "latency_ns", "bound")}


infer_row, train_row = Asked("infer", _infer), Asked("train", _train)
serve_row, cpu_row = Asked("serve", _serve), Asked("cpu", _cpu)


def _noun(kind: str) -> Callable[[str], object]:
    """Reads a model or a GPU by name."""

    def load(name: str) -> object:
        catalog = importlib.import_module("tierloom.offload.catalog")
        return getattr(catalog, f"load_{kind}")(name)

    return load


NOUNS: dict[str, Callable[[str], object]] = {"model": _noun("model"), "gpu": _noun("gpu"), "machine": Machine.load}


def _plain(document: Any, *keys: str) -> Row:  # noqa: ANN401 (a document)
    return {key: document.get(key) for key in keys}


def _renamed(row: Row, **names: str) -> Row:
    return {names.get(key, key): value for key, value in row.items()}
