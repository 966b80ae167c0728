"""What the tools' own parsers take, read out of their packages; the tests hold `--emit` against it.

    python benches/offload_parsers.py            # fetch, run our output through each parser, show
    python benches/offload_parsers.py --record   # and write tests/offload/parsers/*.json again
    python benches/offload_parsers.py vllm       # this one alone

Packages come from PyPI through pip, without their dependencies: a parser is taken out of its source and run
alone, so that nothing of several GB is installed. Those of vLLM and DeepSpeed are run whole, in an environment of their
own, by `offload_stand_ins.py`, which stands in for PyTorch. vLLM's wheel has 340 MB.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import shlex
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from collections.abc import Callable
from pathlib import Path

from tierloom import offload
from tierloom.offload.exporters import emit
from tierloom.offload.exporters.deepspeed import deepspeed_training

RECORDS = Path(__file__).parents[1] / "tests" / "offload" / "parsers"


def fetch(package: str, folder: Path, *, source: bool = False) -> tuple[str, Path]:
    """Version and file of a package."""
    kind = ["--no-binary", ":all:"] if source else []
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", *kind, "--dest", str(folder), package]
    subprocess.run(command, check=True)
    wanted = package.replace("-", "_")
    file = next(path for path in folder.iterdir() if path.name.replace("-", "_").startswith(wanted))
    return re.findall(r"[-_](\d+\.\d+[\d.]*)", file.name)[0].rstrip("."), file


def member(file: Path, ending: str) -> str:
    """Text of one file in a wheel or source distribution."""
    if file.suffix == ".whl":
        with zipfile.ZipFile(file) as wheel:
            return wheel.read(next(name for name in wheel.namelist() if name.endswith(ending))).decode()
    with tarfile.open(file) as archive:
        found = archive.extractfile(next(each for each in archive.getmembers() if each.name.endswith(ending)))
        assert found
        return found.read().decode()


def function(source: str, name: str, scope: dict) -> Callable:
    """One function of a module, run without the rest of it."""
    node = next(each for each in ast.parse(source).body if isinstance(each, ast.FunctionDef) and each.name == name)
    exec(compile(ast.Module([node], []), name, "exec"), scope)  # noqa: S102 (the tool's own code, by name)
    return scope[name]


def flexgen(folder: Path) -> dict:
    """FlexGen's `add_parser_arguments`, run on our line."""
    version, file = fetch("flexgen", folder)
    scope: dict = {"argparse": argparse}
    function(member(file, "flexgen/utils.py"), "str2bool", scope)
    add = function(member(file, "flexgen/flex_opt.py"), "add_parser_arguments", scope)
    parser = argparse.ArgumentParser()
    add(parser)
    words = line("flexgen", "opt-66b", "flexgen.flex_opt")
    taken = parser.parse_args(words)
    assert len(taken.percent) == 6
    assert sum(taken.percent) == 300
    options = sorted(option for action in parser._actions for option in action.option_strings)  # noqa: SLF001
    return {"tool": "flexgen", "version": version, "options": options}


def llama_cpp(folder: Path) -> dict:
    """The options that llama.cpp's `common/arg.cpp` declares, as packaged with llama-cpp-python."""
    version, file = fetch("llama-cpp-python", folder, source=True)
    text = member(file, "vendor/llama.cpp/common/arg.cpp")
    groups = re.findall(r"add_opt\(common_arg\(\s*\{([^}]*)\}(?:\s*,\s*\{([^}]*)\})?", text)
    options = sorted({option for pair in groups for group in pair for option in re.findall(r'"(-[\w-]+)"', group)})
    unknown = [word for word in line("llama.cpp", "llama-3.1-70b", "llama-server") if word.startswith("-")]
    assert set(unknown) <= set(options), set(unknown) - set(options)
    return {"tool": "llama.cpp", "version": f"llama-cpp-python {version}", "options": options}


def ktransformers(folder: Path) -> dict:
    """The click options of `kt run`."""
    version, file = fetch("kt-kernel", folder)
    tree = ast.parse(member(file, "kt_kernel/cli/commands/run.py"))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func) == "click.option"]
    options = sorted(
        {a.value for c in calls for a in c.args if isinstance(a, ast.Constant) and str(a.value).startswith("-")}
    )
    words = [word for word in line("ktransformers", "qwen3-30b-a3b", "run") if word.startswith("-")]
    assert set(words) <= set(options), set(words) - set(options)
    return {"tool": "ktransformers", "version": version, "options": options}


def lmcache(folder: Path) -> dict:
    """The keys of LMCache's `_CONFIG_DEFINITIONS`."""
    version, file = fetch("lmcache", folder)
    tree = ast.parse(member(file, "lmcache/v1/config.py"))
    table = next(
        node.value
        for node in tree.body
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "_CONFIG_DEFINITIONS"
    )
    assert isinstance(table, ast.Dict)
    keys = sorted(key.value for key in table.keys if isinstance(key, ast.Constant))
    said = [text.split(":")[0] for text in text_of("lmcache", "opt-66b").splitlines() if not text.startswith("#")]
    assert set(said) <= set(keys), set(said) - set(keys)
    return {"tool": "lmcache", "version": version, "options": keys}


def deepspeed(folder: Path) -> dict:
    """DeepSpeed's ZeRO settings, run on our documents for inference and for training."""
    version, file = fetch("deepspeed", folder, source=True)
    with tarfile.open(file) as archive:
        archive.extractall(folder, filter="data")
    trained = offload.train("gpt2-8b", "a10", "liu-a", stage="zero-3", compare=())
    documents = [text_of("deepspeed", "opt-66b"), deepspeed_training(trained.plan)]
    options = stood_in("deepspeed", folder, next(folder.glob("deepspeed-*/")), documents)
    return {"tool": "deepspeed", "version": version, "options": options}


def vllm(folder: Path) -> dict:
    """vLLM's own argument parser, run on our lines."""
    version, file = fetch("vllm", folder)
    with zipfile.ZipFile(file) as wheel:
        wheel.extractall(folder, [name for name in wheel.namelist() if name.endswith(".py")])  # noqa: S202 (zipfile leaves no path outside)
    drafted = offload.infer("qwen3-32b", "a10", "liu-a", users=4, shared_prefix=100, speculative="4:0.7", compare=())
    options = stood_in("vllm", folder, folder, [text_of("vllm", "opt-66b"), emit("vllm", drafted)])
    return {"tool": "vllm", "version": version, "options": options}


def stood_in(tool: str, folder: Path, source: Path, texts: list[str]) -> list[str]:
    """What a tool's parser knows, after it has taken these texts."""
    venv.create(folder / "environment", with_pip=True)
    python = folder / "environment/bin/python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", "pydantic", "pyyaml", "packaging"], check=True)
    command = [python, Path(__file__).with_name("offload_stand_ins.py"), tool, source]
    for text in texts:
        done = subprocess.run(command, input=text, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def text_of(tool: str, model: str) -> str:
    """What we write for a tool."""
    return emit(tool, offload.infer(model, "a10", "liu-a", throughput=True, compare=()))


def line(tool: str, model: str, after: str) -> list[str]:
    """Words of our command line after the program's name."""
    words = shlex.split(text_of(tool, model), comments=True)
    return words[next(i for i, word in enumerate(words) if word.endswith(after)) + 1 :]


CHECKS = (flexgen, ktransformers, lmcache, llama_cpp, deepspeed, vllm)


def main() -> None:
    """Checks the parsers that are named, or all."""
    record = "--record" in sys.argv
    named = {word for word in sys.argv[1:] if word != "--record"}
    for check in CHECKS:
        if named and check.__name__ not in named:
            continue
        with tempfile.TemporaryDirectory() as folder:
            found = check(Path(folder))
        print(f"{found['tool']}: our output is taken by {found['version']} ({len(found['options'])} options)")
        if record:
            RECORDS.mkdir(exist_ok=True)
            (RECORDS / f"{found['tool']}.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
