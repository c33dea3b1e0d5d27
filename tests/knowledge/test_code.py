"""Code in the advice is valid Python or shell, and uses only names that exist in torch."""

import ast
import importlib
import inspect
import re
import shlex
from pathlib import Path
from string import Template
from types import SimpleNamespace

import pytest

from tb_bottleneck import knowledge
from tb_bottleneck.__main__ import argument_parser
from tb_bottleneck.base.regime import Regime
from tb_bottleneck.bottlenecks.texts import regime_advice, telemetry_advice
from tb_bottleneck.knowledge.catalogue import load
from tb_bottleneck.knowledge.health_texts import health_advice
from tb_bottleneck.knowledge.texts import guarded, job_texts
from tb_bottleneck.workers.ipc import FIXES

torch = pytest.importorskip("torch")

_PROGRAMS = "nice|python|torchrun|tensorboard|chmod|nvidia-smi|lspci|dmidecode|pip|touch|tb-bottleneck"
_SHELL = re.compile(rf"^(?:sudo )?(?:[A-Z_]+=\S+ )*(?:{_PROGRAMS})\b")
_OURS = {"tb-bottleneck", "tb_bottleneck"}
_DOTTED = re.compile(r"\btorch(?:\.[A-Za-z_]\w*)+")
# Imports that users need for these lines, by the names in the lines.
_CALLED = {
    "DataLoader": "torch.utils.data.DataLoader",
    "DistributedDataParallel": "torch.nn.parallel.DistributedDataParallel",
    "FullyShardedDataParallel": "torch.distributed.fsdp.FullyShardedDataParallel",
    "fully_shard": "torch.distributed.fsdp.fully_shard",
    "profile": "torch.profiler.profile",
    "schedule": "torch.profiler.schedule",
}


def _texts():
    """Returns (place, code, prose) of every cause and defect."""
    for regime in Regime:
        for name, cause in regime_advice(regime).causes.items():
            yield f"{regime}.{name}", cause.code.template, f"{cause.summary} {cause.confirm}"
    for name, cause in telemetry_advice().causes.items():
        yield f"telemetry.{name}", cause.code.template, f"{cause.summary} {cause.confirm}"
    for name, cause in job_texts().causes.items():
        yield f"jobs.{name}", cause.code, f"{cause.summary} {cause.confirm}"
    for name, entry in load("health.toml").items():
        for fix in health_advice(name).fixes:
            yield f"health.{name}", fix, entry["detail"]
    for name, fix in FIXES.items():
        yield f"failures.{name}", fix, ""


ALL = list(_texts())
FITTED = {"pinned": ", pin_memory=True", "half_type": "bfloat16"}
"""What is no number: an argument that is added to code for a run on a device, and the name of a type."""


def _tree(code: str) -> ast.Module:
    filled = Template(code).safe_substitute(dict.fromkeys(re.findall(r"\$(\w+)", code), "4") | FITTED)
    return ast.parse("\n".join(line for line in filled.splitlines() if not _SHELL.match(line)))


def _found(dotted: str):
    """Returns the object with this dotted name. Raises an error if torch does not have it."""
    value, path = torch, "torch"
    for part in dotted.split(".")[1:]:
        path = f"{path}.{part}"
        value = getattr(value, part) if hasattr(value, part) else importlib.import_module(path)
    return value


@pytest.mark.parametrize(("where", "code"), [(where, code) for where, code, _ in ALL])
def test_advised_code_can_be_parsed(where, code):
    _tree(code)


@pytest.mark.parametrize(("where", "code"), [(where, code) for where, code, _ in ALL if "num_workers=" in code])
def test_code_that_starts_workers_can_be_parsed_with_its_guard(where, code):
    tree = _tree("\n".join(guarded(code.strip().splitlines())))
    [guard] = [node for node in tree.body if isinstance(node, ast.If) and "__main__" in ast.unparse(node.test)]
    assert "num_workers=" in ast.unparse(guard)


def _commands():
    """Returns (place, command line) of each of our own commands in code, and in backticks in any text."""
    for where, code, _ in ALL:
        for line in code.splitlines():
            if _SHELL.match(line) and _OURS & set(shlex.split(line, comments=True)):
                yield where, line
    for file in sorted(Path(knowledge.__file__).parent.rglob("*.toml")):
        for quoted in re.findall(r"`(tb-bottleneck [^`]+)`", file.read_text("utf-8")):
            yield file.stem, quoted


COMMANDS = list(_commands())


def test_commands_of_ours_are_found():
    assert {"telemetry.idle_without_steps", "health.no_step_clock", "failures.analysis_failed"} <= dict(COMMANDS).keys()


@pytest.mark.parametrize(("where", "line"), COMMANDS)
def test_our_own_parser_accepts_an_advised_command(where, line):
    words = shlex.split(line, comments=True)
    name = next(at for at, word in enumerate(words) if word in _OURS)
    argument_parser().parse_args(words[name + 1 :])


@pytest.mark.parametrize(("where", "text"), [(where, f"{code} {prose}") for where, code, prose in ALL])
def test_torch_has_what_advice_names(where, text):
    for dotted in _DOTTED.findall(text):
        _found(dotted)


@pytest.mark.parametrize(("where", "code"), [(where, code) for where, code, _ in ALL])
def test_calls_have_the_arguments_that_they_are_given(where, code):
    for call in (node for node in ast.walk(_tree(code)) if isinstance(node, ast.Call)):
        name = ast.unparse(call.func)
        called = _found(_CALLED.get(name, name)) if name in _CALLED or _DOTTED.fullmatch(name) else None
        if called is None or inspect.isbuiltin(called):  # functions in C have no signature
            continue
        known = inspect.signature(called).parameters
        takes_any = any(one.kind is one.VAR_KEYWORD for one in known.values())
        for keyword in call.keywords:
            assert takes_any or keyword.arg in known, f"{name} takes no {keyword.arg}"


def test_a_dataset_that_is_advised_can_be_loaded_from():
    """Returns the class of the advice, with the work of the loop as `prepare`."""
    code = regime_advice("input").causes["batches_in_the_loop"].code.template
    lines = code.replace("batch_size=...", "batch_size=2").replace(
        ", num_workers=$workers_for_loop, persistent_workers=True", ""
    )
    lines = lines.replace("$pinned", "")
    names = {"torch": torch, "DataLoader": torch.utils.data.DataLoader, "files": [1, 2, 3, 4], "prepare": lambda n: n}
    exec(lines, names)
    assert [batch.tolist() for batch in names["loader"]] == [[1, 2], [3, 4]]


def test_a_mean_that_is_advised_is_of_the_steps_that_it_names():
    """Losses of 2 each: the mean of a hundred of them is always printed as 2."""
    code = regime_advice("sync").causes["scalar_reads"].code.template
    printed = []
    names = {"total_loss": torch.zeros(()), "loss": torch.tensor(2.0), "print": printed.append}
    for step in range(300):
        exec(code, names | {"step": step}, names)
    assert printed == [2.0, 2.0, 2.0]


def test_a_logged_mean_that_is_advised_is_of_the_steps_since_the_last_one():
    """Losses of 2 each: the mean of a hundred of them is 2, and nothing is read in other steps."""
    code = regime_advice("interruption").causes["logging"].code.template
    logged = []
    writer = SimpleNamespace(add_scalar=lambda name, value, step: logged.append((step, value)))
    names = {"total": torch.zeros(()), "loss": torch.tensor(2.0), "writer": writer}
    for step in range(1, 301):
        exec(code, names | {"step": step}, names)
    assert logged == [(100, 2.0), (200, 2.0), (300, 2.0)]


@pytest.mark.parametrize(("cause", "named"), [("scalar_reads", True), ("explicit_waits", False)])
def test_the_sync_debug_mode_is_advised_only_where_it_reports_waits(cause, named):
    """torch.cuda.set_sync_debug_mode warns of reads and copies, not of synchronize() (c10/cuda/CUDAFunctions.cpp)."""
    words = regime_advice("sync").causes[cause]
    assert ("set_sync_debug_mode" in words.summary + words.confirm) == named
