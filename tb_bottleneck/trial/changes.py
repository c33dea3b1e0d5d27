"""The changes that can be tried: how each is applied without editing the script, its effect on results, and its code.

A change is applied in the process of the training before the script starts. It replaces functions of torch, so that it
overrides what the script itself sets.
"""

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tb_bottleneck.base.errors import Unusable
from tb_bottleneck.trial import overrides


@dataclass(frozen=True)
class Kind:
    """One kind of change that a trial can make.

    `shows` describes the change. `apply` is called in the training process with the value as text. `code` is the code
    that makes the change in a script, with the placeholder $value. `numerics` says what may change in the results;
    empty if nothing. `environment` returns environment variables to set, from the value. knowledge/trials.toml says
    which findings suggest which change.
    """

    shows: str
    apply: Callable[[str], None]
    code: str
    values: str = ""  # for help: the form of the value; empty if there is none
    numerics: str = ""
    environment: Callable[[str], dict[str, str]] = lambda _: {}
    loader: str = ""  # the argument of DataLoader that the change sets
    optimizer: str = ""  # the argument of the optimizer that the change sets


KINDS: Mapping[str, Kind] = {
    "workers": Kind(
        "worker processes of the DataLoader",
        lambda value: overrides.loader(num_workers=overrides.count(value)),
        "num_workers=$value",
        "N",
        loader="num_workers",
    ),
    "prefetch": Kind(
        "batches that each worker prefetches",
        lambda value: overrides.loader(prefetch_factor=overrides.count(value)),
        "prefetch_factor=$value",
        "N",
        loader="prefetch_factor",
    ),
    "pin_memory": Kind(
        "batches in pinned memory", lambda _: overrides.loader(pin_memory=True), "pin_memory=True", loader="pin_memory"
    ),
    "persistent_workers": Kind(
        "workers that live for all epochs",
        lambda _: overrides.loader(persistent_workers=True),
        "persistent_workers=True",
        loader="persistent_workers",
    ),
    "sharing": Kind(
        "how workers share tensors: file_system or file_descriptor",
        overrides.sharing,
        'torch.multiprocessing.set_sharing_strategy("$value")',
        "STRATEGY",
    ),
    "threads": Kind(
        "threads of an operator on the CPU",
        overrides.threads,
        "torch.set_num_threads($value)",
        "N",
        environment=lambda value: {"OMP_NUM_THREADS": value, "MKL_NUM_THREADS": value},
    ),
    "tf32": Kind(
        "TF32 for products of float32",
        overrides.tf32,
        'torch.set_float32_matmul_precision("high")',
        numerics="products have ten bits of mantissa",
    ),
    "cudnn_benchmark": Kind(
        "cuDNN tries its algorithms",
        overrides.cudnn_benchmark,
        "torch.backends.cudnn.benchmark = True",
        numerics="other algorithms round differently",
    ),
    "compile": Kind(
        "torch.compile of the model",
        overrides.compile_model,
        'model = torch.compile(model, mode="$value")',
        "[MODE]",
        numerics="fused operators round differently",
    ),
    "bf16": Kind(
        "autocast in bfloat16",
        overrides.bf16,
        "with torch.autocast(device.type, torch.bfloat16):\n    outputs = model(inputs)",
        numerics="activations have eight bits of mantissa",
    ),
    "channels_last": Kind(
        "channels_last for the model",
        overrides.channels_last,
        "model = model.to(memory_format=torch.channels_last)",
        numerics="other algorithms round differently",
    ),
    "fused": Kind(
        "the fused optimizer",
        lambda _: overrides.optimizer(fused=True),
        "fused=True",
        numerics="the update rounds differently",
        optimizer="fused",
    ),
    "foreach": Kind(
        "the optimizer for lists of tensors",
        lambda _: overrides.optimizer(foreach=True),
        "foreach=True",
        numerics="the update rounds differently",
        optimizer="foreach",
    ),
    "set_to_none": Kind(
        "gradients are freed instead of zeroed", overrides.set_to_none, "optimizer.zero_grad(set_to_none=True)"
    ),
    "gc_freeze": Kind(
        "the garbage collector leaves out what exists before the first step",
        overrides.gc_freeze,
        "gc.collect()\ngc.freeze()",
    ),
    "alloc": Kind(
        "settings of the CUDA allocator",
        overrides.nothing,
        'os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "$value"',
        "SETTINGS",
        environment=lambda value: {"PYTORCH_CUDA_ALLOC_CONF": value, "PYTORCH_ALLOC_CONF": value},
    ),
}
"""All kinds of changes by name."""


@dataclass(frozen=True)
class Change:
    """A change of the program, which may combine several settings. `Change()` changes nothing."""

    settings: tuple[tuple[str, str], ...] = ()  # names of KINDS and values
    environment: tuple[tuple[str, str], ...] = ()
    arguments: tuple[str, ...] = ()  # appended to those of the program
    folder: str = ""  # of another work tree, in which the program runs
    label: str = ""

    @property
    def name(self) -> str:
        """The change as text, as given on the command line; "unchanged" for `Change()`."""
        texts = [f"{name}={value}" if value else name for name, value in self.settings]
        texts += [f"--env {name}={value}" for name, value in self.environment]
        texts += [f"--args {shlex.quote(shlex.join(self.arguments))}"] if self.arguments else []
        return " ".join([*texts, self.label]).strip() or "unchanged"

    @property
    def variables(self) -> dict[str, str]:
        """The environment variables that the change sets, with their values."""
        found = dict(self.environment)
        for name, value in self.settings:
            found |= KINDS[name].environment(value)
        return found

    def combined(self, other: "Change") -> "Change":
        """Returns a change that makes both changes, this one and `other`."""
        return Change(
            self.settings + other.settings,
            self.environment + other.environment,
            self.arguments + other.arguments,
            other.folder or self.folder,
            " ".join(filter(None, (self.label, other.label))),
        )


def apply(settings: Sequence[Sequence[str]]) -> None:
    """Applies `settings`, pairs of a name in KINDS and a value, in this process. Call it before the script starts."""
    for name, value in settings:
        KINDS[name].apply(value)


def parsed(texts: Sequence[str]) -> list[Change]:
    """Returns the changes that the words of a command line describe. All words together are one change, but a list of
    values such as `workers=2,4` gives one change per value.

    Raises:
        Unusable: there is no such change, or its value is missing or wrong.
    """
    variants = [Change()]
    for text in texts:
        name, _, value = text.partition("=")
        kind = KINDS.get(name)
        if kind is None:
            raise Unusable(
                f"no change is named {name!r}; there are {', '.join(KINDS)}, and --env, --args, --patch, --rev"
            )
        if kind.values and not kind.values.startswith("[") and not value:
            raise Unusable(f"{name} needs a value: {name}={kind.values}")
        if value and not kind.values:
            raise Unusable(f"{name} has no value")
        values = value.split(",") if kind.values == "N" else [value]
        if kind.values == "N":
            for each in values:
                overrides.count(each)
        variants = [each.combined(Change(((name, one),))) for each in variants for one in values]
    return variants
