"""The parsers of vLLM and DeepSpeed, run without PyTorch: what they import beside their own settings is stood in for.

    python benches/offload_stand_ins.py vllm|deepspeed SOURCE < OUTPUT

SOURCE is the folder that their package was unpacked to, OUTPUT what `--emit` wrote. Needs pydantic, PyYAML and
packaging. Prints the options or keys that the parser knows; fails where it refuses the output, or takes an option that
is not there, as then nothing was tried.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import re
import shlex
import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from unittest.mock import MagicMock

OWN = {
    "vllm": ("vllm", "vllm.config", "vllm.engine", "vllm.utils", "vllm.logger", "vllm.envs", "vllm.logging_utils"),
    "deepspeed": ("deepspeed.runtime.config_utils", "deepspeed.runtime.zero", "deepspeed.runtime.zenflow"),
}
OWN["deepspeed"] += ("deepspeed.runtime.precision_config", "deepspeed.runtime.constants")
"""What is really run of each tool."""
NOT_OWN = ("vllm.config.quantization",)
PRESENT = (
    "pydantic",
    "pydantic_core",
    "annotated_types",
    "typing_extensions",
    "typing_inspection",
    "packaging",
    "yaml",
)
MADE_UP = "nothing_has_this_name"


class StandIn(MagicMock):
    """A module of which only the name is needed, and anything in it; pydantic takes any value for its types."""

    __path__: tuple[str, ...] = ()

    def __init__(self, *_: object, **__: object) -> None:
        super().__init__()

    @classmethod
    def __get_pydantic_core_schema__(cls, *_: object) -> object:
        from pydantic_core import core_schema

        return core_schema.any_schema()

    def __or__(self, _: object) -> type:
        return object

    __ror__ = __or__


class StandIns(MetaPathFinder, Loader):
    """Finds a stand-in for every module that is neither the standard library's, present, nor run of the tool."""

    def __init__(self, tool: str, source: str) -> None:
        self.tool = tool
        self.source = source

    def find_spec(self, name: str, path: object, target: object = None) -> ModuleSpec | None:  # noqa: ARG002
        """None: somebody else has it."""
        top = name.split(".", maxsplit=1)[0]
        if top in sys.stdlib_module_names or top in PRESENT or top.startswith("_"):
            return None
        within = any(name.startswith(f"{own}.") for own in OWN[self.tool] if own != self.tool)
        if (within or name in OWN[self.tool]) and name not in NOT_OWN:
            return None
        return ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """A stand-in under this name."""
        module = StandIn()
        module.__path__ = (f"{self.source}/{spec.name.replace('.', '/')}",)
        module.__spec__, module.__name__ = spec, spec.name
        return module  # type: ignore[return-value]

    def exec_module(self, module: ModuleType) -> None:
        """Nothing is run."""


def vllm(text: str) -> list[str]:
    """Options of `vllm serve`, which has to take the line."""
    from vllm.engine.arg_utils import AsyncEngineArgs
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    parser = AsyncEngineArgs.add_cli_args(FlexibleArgumentParser(prog="vllm serve"))
    words = shlex.split(text, comments=True)
    line = words[words.index("serve") + 2 :]
    parser.parse_args(line)
    try:
        parser.parse_args([*line, f"--{MADE_UP}", "1"])
    except SystemExit:
        return sorted(option for action in parser._actions for option in action.option_strings)  # noqa: SLF001
    raise AssertionError(MADE_UP)


def deepspeed(text: str) -> list[str]:
    """Keys of the ZeRO settings with their parts, which have to take the document."""
    from deepspeed.runtime.constants import GRADIENT_ACCUMULATION_STEPS, TRAIN_MICRO_BATCH_SIZE_PER_GPU
    from deepspeed.runtime.precision_config import get_bfloat16_config
    from deepspeed.runtime.zero.config import DeepSpeedZeroConfig, get_zero_config
    from deepspeed.runtime.zero.offload_config import DeepSpeedZeroOffloadOptimizerConfig as Optimizer
    from deepspeed.runtime.zero.offload_config import DeepSpeedZeroOffloadParamConfig as Parameters
    from pydantic import ValidationError

    document = json.loads(text)
    get_zero_config(document)
    assert get_bfloat16_config(document).enabled
    try:
        get_zero_config({"zero_optimization": {MADE_UP: 1}})
    except ValidationError:
        top = [TRAIN_MICRO_BATCH_SIZE_PER_GPU, GRADIENT_ACCUMULATION_STEPS, "bf16"]
        keys = [f"zero_optimization.{key}" for key in DeepSpeedZeroConfig.model_fields]
        keys += [f"zero_optimization.offload_param.{key}" for key in Parameters.model_fields]
        keys += [f"zero_optimization.offload_optimizer.{key}" for key in Optimizer.model_fields]
        return sorted([*top, *keys, "bf16.enabled", "zero_optimization"])
    raise AssertionError(MADE_UP)


def version_of(package: str) -> str:
    """vLLM asks what is installed; of a stand-in, a version that it takes."""
    try:
        return installed(package)
    except importlib.metadata.PackageNotFoundError:
        return "2.11.0"


installed = importlib.metadata.version


def main(tool: str, source: str, text: str) -> None:
    """Runs one parser."""
    importlib.metadata.version = version_of
    sys.modules["regex"] = re
    sys.path.insert(0, source)
    sys.meta_path.insert(0, StandIns(tool, source))
    print(json.dumps({"vllm": vllm, "deepspeed": deepspeed}[tool](text)))


if __name__ == "__main__":
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("tool", choices=OWN)
    asked.add_argument("source")
    given = asked.parse_args()
    main(given.tool, given.source, sys.stdin.read())
