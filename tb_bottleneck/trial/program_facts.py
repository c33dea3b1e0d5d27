"""Facts about a program in a trial besides its times: the first losses, the peak memory, and modules that were not
imported from the copy of the work tree."""

import sys
from pathlib import Path
from typing import Any

MAX_LOSSES = 50
MAX_UNCOPIED = 100


class Losses:
    """The losses of the program's first steps: the scalar tensors on which the program calls `backward`.

    The values are read only at the end, so that the program does not wait for the device.
    """

    def __init__(self) -> None:
        self._kept: list[Any] = []

    def install(self) -> None:
        """Replaces Tensor.backward by a function that also keeps a copy of the tensor."""
        import torch

        tensor_class: Any = torch.Tensor
        original = tensor_class.backward

        def backward(tensor: Any, *args: Any, **given: Any) -> Any:
            if len(self._kept) < MAX_LOSSES and tensor.numel() == 1:
                self._kept.append(tensor.detach().clone())
            return original(tensor, *args, **given)

        tensor_class.backward = backward

    def values(self) -> list[float]:
        """Returns the losses. Waits for the device."""
        return [float(each) for each in self._kept]


def uncopied_modules(work_tree: str) -> list[str]:
    """Returns the paths of the modules that were imported from `work_tree`, although the program runs in a copy of it.

    The paths are relative to `work_tree`. An editable installation, or an absolute path in PYTHONPATH, can be the
    cause. A change in the copy does not affect these modules.
    """
    if not work_tree:
        return []
    files = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
    own = [Path(file).resolve() for file in files if isinstance(file, str)]
    top, copy = Path(work_tree).resolve(), Path.cwd()
    return sorted(
        str(file.relative_to(top))
        for file in own
        if file.is_relative_to(top) and not file.is_relative_to(copy) and "site-packages" not in file.parts
    )[:MAX_UNCOPIED]


def peak_bytes() -> int:
    """Returns the peak of the device's memory in bytes, or, without a device, the peak of the process's memory."""
    import torch

    if torch.cuda.is_available():
        return int(torch.cuda.max_memory_allocated())
    try:
        import resource
    except ImportError:
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
