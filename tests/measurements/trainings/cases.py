"""The list of trainings with a planted problem each, and the expected answers. Does not import torch.

The list was committed before the first recording was analysed, and is not adapted to the answers. `# planted: NAME`
marks the planted line in the code of each training.
"""

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

HERE = Path(__file__).parent
# Where each training is: the module in this folder and the function in it.
TRAININGS = {
    "cnn": ("vision", "cnn"),
    "vit": ("vision", "vit"),
    "autoencoder": ("vision", "autoencoder"),
    "transformer": ("text", "transformer"),
    "lstm": ("text", "lstm"),
    "audio": ("audio", "cnn"),
    "tabular": ("tabular", "perceptron"),
    "gan": ("gan", "gan"),
    "rl": ("rl", "actor_critic"),
    "huggingface": ("huggingface", "trainer"),
    "lightning": ("lit", "classifier"),
    "compiled": ("compiled", "tower"),
    "chain": ("compiled", "chain"),
    "ddp": ("ddp", "stack"),
    "segmentation": ("everyday", "segmentation"),
    "graph": ("everyday", "graph"),
    "ranking": ("everyday", "ranking"),
    "pictures": ("everyday", "pictures"),
    "augmented": ("everyday", "augmented"),
    "short_epochs": ("everyday", "short_epochs"),
    "dashboard": ("everyday", "dashboard"),
    "series": ("everyday", "series"),
    "words": ("everyday", "words"),
}
INPUT = r"loader|worker|input|batch|data|collat|storage|read"
HOST = r"host|python|sleep|code|callback"
LAUNCH = r"small|tiny|operator|kernel|launch|dispatch|overhead|python"
EVALUATION, LOGGING, CHECKPOINT = r"evaluat|validat", r"\blog|histogram|summary|writ", r"checkpoint|sav(e|ing)"


@dataclass(frozen=True)
class Case:
    """One training with its planted problem, and the answers that are right. Without `words` it is healthy."""

    name: str  # TRAINING/PROBLEM
    regimes: str  # regimes that the verdict may name, separated by spaces
    words: str = ""  # pattern: the id or the title of the first finding has one of these words
    line: bool = True  # the planted line runs in the recorded steps, so a trace can name it
    wall: bool = False  # the gain is measured by wall time, not by the CPU time of the process
    free: bool = False  # may use all cores; otherwise the training is pinned to one, and has one thread
    work: int = 1  # samples per step of the fixed half / of the slow one
    ranks: int = 1
    steps: int = 24  # timed steps

    @property
    def training(self) -> str:
        return self.name.split("/")[0]

    @property
    def problem(self) -> str:
        return self.name.split("/")[1]

    @property
    def file(self) -> Path:
        """The file of the training."""
        return HERE / f"{TRAININGS[self.training][0]}.py"

    @cached_property
    def planted(self) -> int:
        """The number of the planted line."""
        marks = [
            number
            for number, text in enumerate(self.file.read_text(encoding="utf-8").splitlines(), 1)
            if re.search(rf"# planted: {self.name}$", text)
        ]
        (number,) = marks
        return number

    @cached_property
    def function(self) -> int:
        """The number of the line that begins the function with the planted line."""
        lines = self.file.read_text(encoding="utf-8").splitlines()[: self.planted]
        return max(number for number, text in enumerate(lines, 1) if re.match(r"\s*def ", text))


def _healthy(name: str, free: bool = False) -> Case:
    """Returns a training without a problem: something that looks like one is harmless. Right is severity `none`."""
    return Case(name, "compute memory", line=False, wall=free, free=free)


_ALL = (
    Case("cnn/python_transform", "input", INPUT),
    Case("cnn/no_workers", "input", INPUT, line=False, wall=True, free=True),
    Case("cnn/slow_collate", "input", INPUT),
    Case("cnn/validation", "interruption", EVALUATION),
    Case("cnn/checkpoint", "interruption", CHECKPOINT),
    Case("cnn/histograms", "interruption", LOGGING),
    _healthy("cnn/item_per_step"),
    Case("vit/head_by_head", "launch host", LAUNCH),
    Case("vit/float64", "compute memory", r"float64|fp64|double|precision", line=False),
    Case("vit/average_by_row", "launch host", LAUNCH),
    _healthy("vit/printed_loss"),
    Case("autoencoder/slow_read", "input", INPUT, wall=True),
    Case("autoencoder/too_few_workers", "input", r"worker", line=False, wall=True, free=True),
    Case("autoencoder/numpy_noise", "host input", rf"{INPUT}|{HOST}"),
    _healthy("autoencoder/ample_workers", free=True),
    Case("transformer/tokenise_per_item", "input", INPUT),
    Case("transformer/gc_many_objects", "interruption", r"garbage"),
    Case("transformer/for_loop_optimizer", "launch", r"optimi"),
    Case("transformer/metric_loop", "host", rf"{HOST}|metric"),
    Case("transformer/checkpoint_slow_disk", "interruption", CHECKPOINT, wall=True),
    _healthy("transformer/accumulation"),
    Case("lstm/own_cell", "launch", LAUNCH),
    Case("lstm/sampling", "interruption launch host", rf"{EVALUATION}|{LAUNCH}|sampl|generat"),
    Case("lstm/progress_sleep", "host interruption", rf"{HOST}|{LOGGING}", wall=True),
    _healthy("lstm/clipped"),
    Case("audio/spectrogram_per_item", "input", INPUT),
    Case("audio/slow_decode", "input", INPUT, line=False, wall=True, free=True),
    Case("audio/json_log", "interruption host", rf"{LOGGING}|{HOST}"),
    _healthy("audio/batched_spectrogram"),
    Case("tabular/pandas_in_loop", "host input", rf"{INPUT}|{HOST}|pandas"),
    Case("tabular/row_by_row", "input", INPUT),
    Case("tabular/column_by_column", "launch", LAUNCH),
    Case("tabular/small_batch", "launch underfilled", rf"{LAUNCH}|batch", line=False, work=32),
    Case("tabular/threads_oversubscribed", "compute memory", r"thread|core|oversubscri", False, wall=True, free=True),
    Case("tabular/threads_too_few", "compute memory", r"thread|core", line=False, wall=True, free=True),
    _healthy("tabular/losses_in_a_list"),
    Case("gan/one_by_one", "launch", rf"{LAUNCH}|batch"),
    Case("gan/samples_each_step", "host interruption", rf"{LOGGING}|{HOST}|{CHECKPOINT}|compress"),
    _healthy("gan/losses_kept"),
    Case("rl/one_by_one", "launch host", rf"{LAUNCH}|{HOST}|batch"),
    Case("rl/render", "host interruption", HOST, wall=True),
    Case("rl/returns_by_element", "launch host", rf"{LAUNCH}|{HOST}"),
    _healthy("rl/large_learner"),
    Case("huggingface/tokenise_in_collator", "input", INPUT),
    Case("huggingface/evaluation", "interruption", EVALUATION, line=False),
    Case("huggingface/saving", "interruption", CHECKPOINT, line=False),
    Case("huggingface/callback_sleep", "host interruption", HOST, wall=True),
    _healthy("huggingface/logging_each_step"),
    Case("lightning/dot_by_dot", "input", INPUT),
    Case("lightning/tally", "host launch sync", rf"{HOST}|{LAUNCH}|metric|scalar"),
    Case("lightning/checkpoint", "interruption", CHECKPOINT, line=False),
    Case("lightning/validation", "interruption", EVALUATION, line=False),
    _healthy("lightning/logged_loss"),
    Case("compiled/changing_shapes", "interruption host launch", r"compil|shape", steps=8),
    Case("compiled/graph_breaks", "launch host", r"break|graph|compil"),
    Case("chain/left_eager", "memory", r"fus|compile|pointwise|elementwise"),
    Case("ddp/straggler", "communication", r"straggl|rank|imbalanc|uneven", wall=True, free=True, ranks=2),
    Case("ddp/small_buckets", "communication", r"bucket|message|small", line=False, wall=True, free=True, ranks=2),
    Case("ddp/reduce_by_hand", "communication", r"overlap|message|collective", wall=True, free=True, ranks=2),
    Case("ddp/synced_micro_batches", "communication", r"sync|accumul|collective", wall=True, free=True, ranks=2),
    Case("segmentation/confusion_matrix", "host", rf"{HOST}|metric"),
    Case("graph/neighbours_in_python", "host input", rf"{HOST}|{INPUT}"),
    Case("ranking/rows_as_lists", "host input", rf"{HOST}|{INPUT}"),
    Case("pictures/decoded_in_the_loop", "input", INPUT, wall=True, free=True),
    Case("augmented/one_worker", "input", INPUT, line=False, wall=True, free=True),
    Case("short_epochs/restarted_workers", "input", r"worker|epoch", line=False, wall=True, free=True, steps=48),
    Case("dashboard/histograms", "interruption", LOGGING, wall=True, free=True),
    Case("dashboard/checkpoints", "interruption", CHECKPOINT, line=False, wall=True, free=True, steps=40),
    Case("series/cell_in_a_loop", "launch host", LAUNCH),
    Case("words/counted_one_by_one", "input", INPUT),
)  # fmt: skip
CASES = {case.name: case for case in _ALL}
