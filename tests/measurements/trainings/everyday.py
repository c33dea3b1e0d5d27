"""Trainings as people write them around torch: metrics counted in Python, graphs in dictionaries, archives of pictures,
short epochs, logging in every step, a cell in a loop over time.

The code of the planted problem that is Python outside torch is timed, so that its share in a report can be compared.
"""

import io
import json
import tarfile
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset
from torch.utils.tensorboard import SummaryWriter

CLASSES = 10
spent_ns: list[int] = []
"""The time of each timed piece of Python since the last `clear`."""


@contextmanager
def timed() -> Iterator[None]:
    """Times Python outside torch: functions of the program, and conversions between lists and tensors."""
    began = time.perf_counter_ns()
    yield
    spent_ns.append(time.perf_counter_ns() - began)


def train(model: nn.Module, optimizer: torch.optim.Optimizer, inputs: Tensor, labels: Tensor) -> Tensor:
    """Trains on one batch. Returns the predictions."""
    optimizer.zero_grad()
    out = model(inputs)
    functional.cross_entropy(out, labels).backward()
    optimizer.step()
    return out.detach()


# --- Segmentation: a confusion matrix of pixels ---


def count_pixels(matrix: list[list[int]], predicted: list[int], labels: list[int]) -> int:
    """Counts predictions by label. Returns how many are right."""
    right = 0
    for i in range(len(predicted)):
        row = matrix[labels[i]]
        row[predicted[i]] = row[predicted[i]] + 1  # planted: segmentation/confusion_matrix
        if predicted[i] == labels[i]:
            right = right + 1
    return right


def segmentation(problem: str, fixed: bool, steps: int, on_step: Callable[[], None]) -> None:
    """Trains a small network that labels pixels."""
    model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, CLASSES, 3, padding=1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    images, labels = torch.randn(4, 3, 64, 64), torch.randint(CLASSES, (4, 64, 64))
    matrix = [[0] * CLASSES for _ in range(CLASSES)]
    counts = np.zeros(CLASSES * CLASSES, np.int64)
    for _ in range(steps):
        predicted = train(model, optimizer, images, labels).argmax(1).flatten()
        if fixed:
            counts += np.bincount((labels.flatten() * CLASSES + predicted).numpy(), minlength=CLASSES * CLASSES)
        else:
            with timed():
                ours, theirs = predicted.tolist(), labels.flatten().tolist()
                count_pixels(matrix, ours, theirs)
        on_step()


# --- A graph: neighbours of nodes in dictionaries ---

NODES, FAN_OUT = 2000, 8


def sample(neighbours: dict[int, list[int]], seeds: list[int], turn: int) -> tuple[list[int], list[int], list[int]]:
    """Returns the nodes of two hops around the seeds, and the edges between them as positions in that list."""
    position = {node: at for at, node in enumerate(seeds)}
    sources, targets, frontier = [], [], list(seeds)
    for _hop in range(2):
        found = []
        for node in frontier:
            own = neighbours[node]
            for i in range(FAN_OUT):
                other = own[(turn * 7 + i * 3 + node) % len(own)]
                if other not in position:  # planted: graph/neighbours_in_python
                    position[other] = len(position)
                    found.append(other)
                sources.append(position[other])
                targets.append(position[node])
        frontier = found
    return list(position), sources, targets


def graph(problem: str, fixed: bool, steps: int, on_step: Callable[[], None]) -> None:
    """Trains a network on neighbourhoods of a graph. The fixed half samples a few of them in advance."""
    source = np.random.default_rng(0)
    table = torch.from_numpy(source.integers(NODES, size=(NODES, 16)))
    neighbours = dict(enumerate(table.tolist()))
    features, labels = torch.randn(NODES, 32), torch.randint(CLASSES, (NODES,))
    first, last = nn.Linear(64, 64), nn.Linear(64, CLASSES)
    model = nn.ModuleList([first, last])
    optimizer = torch.optim.Adam(model.parameters(), foreach=True)
    drawn = [torch.randperm(NODES)[:128].tolist() for _ in range(4)]
    prepared = [sample(neighbours, seeds, turn) for turn, seeds in enumerate(drawn)]
    for step in range(steps):
        seeds = drawn[step % 4]
        with timed():
            found = prepared[step % 4] if fixed else sample(neighbours, seeds, step)
            nodes, sources, targets = (torch.tensor(each) for each in found)
        own = features[nodes]
        gathered = torch.zeros_like(own).index_add_(0, targets, own[sources])
        optimizer.zero_grad()
        out = last(functional.relu(first(torch.cat([own, gathered], 1))))
        functional.cross_entropy(out[: len(seeds)], labels[seeds]).backward()
        optimizer.step()
        on_step()


# --- Rows that are prepared as lists ---


def standardised(rows: list[list[float]]) -> list[list[float]]:
    """Returns the rows with mean 0 and the largest value 1."""
    out = []
    for row in rows:
        total = 0.0
        for value in row:
            total = total + value  # planted: ranking/rows_as_lists
        mean, largest = total / len(row), 1e-6
        for value in row:
            if value - mean > largest:
                largest = value - mean
        out.append([(value - mean) / largest for value in row])
    return out


def ranking(problem: str, fixed: bool, steps: int, on_step: Callable[[], None]) -> None:
    """Trains a perceptron on rows that are standardised in each step."""
    model = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, CLASSES))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, foreach=True)
    table, labels = torch.randn(256, 64), torch.randint(CLASSES, (256,))
    rows = table.tolist()
    for _ in range(steps):
        if fixed:
            centred = table - table.mean(1, keepdim=True)
            inputs = centred / centred.amax(1, keepdim=True).clamp(min=1e-6)
        else:
            with timed():
                inputs = torch.tensor(standardised(rows))
        train(model, optimizer, inputs, labels)
        on_step()


# --- A tar archive of JPEG files ---


class Archive(Dataset[tuple[Tensor, int]]):
    """Pictures in a tar file."""

    def __init__(self, path: Path, length: int) -> None:
        self.path, self.length = path, length
        with tarfile.open(path) as archive:
            self.members = [(member.offset_data, member.size) for member in archive.getmembers()]

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        begin, size = self.members[index % len(self.members)]
        with self.path.open("rb") as file:
            file.seek(begin)
            picture = Image.open(io.BytesIO(file.read(size)))  # planted: pictures/decoded_in_the_loop
        return torch.from_numpy(np.asarray(picture.convert("RGB"))).permute(2, 0, 1).float() / 255, index % CLASSES


def write_archive(folder: Path) -> Path:
    """Writes pictures to a tar file."""
    source = np.random.default_rng(0)
    path = folder / "pictures.tar"
    with tarfile.open(path, "w") as archive:
        for number in range(64):
            content = io.BytesIO()
            Image.fromarray(source.integers(255, size=(160, 160, 3), dtype=np.uint8)).save(content, "JPEG")
            entry = tarfile.TarInfo(f"{number}.jpg")
            entry.size = content.tell()
            content.seek(0)
            archive.addfile(entry, content)
    return path


def picture_network() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, 2, 1), nn.ReLU(), nn.Conv2d(16, 32, 3, 2, 1), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, CLASSES),
    )  # fmt: skip


def pictures(problem: str, fixed: bool, steps: int, on_step: Callable[[], None]) -> None:
    """Trains on pictures of an archive, which one worker decodes in the fixed half."""
    model = picture_network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with tempfile.TemporaryDirectory() as folder:
        data = Archive(write_archive(Path(folder)), steps * 16)
        for images, labels in DataLoader(data, 16, num_workers=1 if fixed else 0):
            train(model, optimizer, images, labels)
            on_step()


# --- Augmentation by workers ---


class Augmented(Dataset[tuple[Tensor, int]]):
    """Pictures that are rotated and filtered."""

    def __init__(self, length: int) -> None:
        self.length = length
        self.picture = Image.fromarray(np.random.default_rng(0).integers(255, size=(128, 128, 3), dtype=np.uint8))

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        turned = self.picture.rotate(index % 360, Image.Resampling.BICUBIC).resize((160, 160))
        return torch.from_numpy(np.asarray(turned)).permute(2, 0, 1).float() / 255, index % CLASSES


def augmented(problem: str, fixed: bool, steps: int, on_step: Callable[[], None]) -> None:
    """Trains on pictures that one worker is too slow to make."""
    model = nn.Sequential(nn.Flatten(), nn.Linear(3 * 160 * 160, CLASSES))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    workers = 2 if fixed else 1  # planted: augmented/one_worker
    for images, labels in DataLoader(Augmented(steps * 16), 16, num_workers=workers):
        train(model, optimizer, images, labels)
        on_step()


# --- Short epochs ---


class Generated(Dataset[tuple[Tensor, int]]):
    """Small pictures that are generated."""

    def __len__(self) -> int:
        return 12 * 16

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        return torch.full((3, 64, 64), index / 1000), index % CLASSES


def short_epochs(problem: str, fixed: bool, steps: int, on_step: Callable[[], None]) -> None:
    """Trains in epochs of twelve steps, each of which starts its workers anew, unless they are kept."""
    model = picture_network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = DataLoader(
        Generated(), 16, num_workers=1, persistent_workers=fixed, multiprocessing_context="spawn"
    )  # planted: short_epochs/restarted_workers
    done = 0
    while done < steps:
        for images, labels in loader:
            train(model, optimizer, images, labels)
            on_step()
            done += 1
            if done == steps:
                break


# --- Logging and checkpoints ---


def dashboard(problem: str, fixed: bool, steps: int, on_step: Callable[[], None]) -> None:
    """Trains with histograms of all weights in each step, or a checkpoint in each tenth."""
    width = 256 if problem == "histograms" else 512
    model = nn.Sequential(
        nn.Linear(64, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, CLASSES)
    )
    optimizer = torch.optim.Adam(model.parameters(), foreach=True)
    inputs, labels, moments = torch.randn(256, 64), torch.randint(CLASSES, (256,)), torch.randn(4_000_000)
    with tempfile.TemporaryDirectory() as folder, SummaryWriter(folder) as writer:
        for step in range(steps):
            train(model, optimizer, inputs, labels)
            if problem == "histograms" and (not fixed or step % 100 == 0):
                for name, values in model.named_parameters():
                    writer.add_histogram(name, values, step)  # planted: dashboard/histograms
            if problem == "checkpoints" and not fixed and step % 10 == 0:
                state = {"model": model.state_dict(), "moments": moments}
                torch.save(state, f"{folder}/last.pt")  # planted: dashboard/checkpoints
            on_step()


# --- A recurrent cell in a loop over time ---


class StepByStep(nn.Module):
    """A recurrent cell that is called for each time."""

    def __init__(self) -> None:
        super().__init__()
        self.cell, self.head = nn.GRUCell(16, 64), nn.Linear(64, CLASSES)

    def forward(self, series: Tensor) -> Tensor:
        state = series.new_zeros(len(series), 64)
        for at in range(series.shape[1]):
            state = self.cell(series[:, at], state)  # planted: series/cell_in_a_loop
        return self.head(state)


class AllAtOnce(nn.Module):
    """The same with torch's own loop over time."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.head = nn.GRU(16, 64, batch_first=True), nn.Linear(64, CLASSES)

    def forward(self, series: Tensor) -> Tensor:
        return self.head(self.layer(series)[1][0])


def series(problem: str, fixed: bool, steps: int, on_step: Callable[[], None]) -> None:
    """Trains a recurrent network on time series."""
    model = AllAtOnce() if fixed else StepByStep()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, foreach=True)
    inputs, labels = torch.randn(32, 60, 16), torch.randint(CLASSES, (32,))
    for _ in range(steps):
        train(model, optimizer, inputs, labels)
        on_step()


# --- Words that are counted in the collation ---

VOCABULARY = 3000


class Texts(Dataset[str]):
    """Lines of JSON with a text."""

    def __init__(self, length: int) -> None:
        source = np.random.default_rng(0)
        self.length = length
        self.lines = [
            json.dumps({"text": " ".join(f"w{word}" for word in source.integers(VOCABULARY, size=120))})
            for _ in range(64)
        ]

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> str:
        return self.lines[index % 64]


def bag(lines: list[str]) -> Tensor:
    """Returns how often each word occurs in each text."""
    out = torch.zeros(len(lines), VOCABULARY)
    for row, line in enumerate(lines):
        for word, count in Counter(json.loads(line)["text"].split()).items():
            out[row, int(word[1:])] = count  # planted: words/counted_one_by_one
    return out


def bag_at_once(lines: list[str]) -> Tensor:
    """Returns the same with one operator."""
    words = [[int(word[1:]) for word in json.loads(line)["text"].split()] for line in lines]
    rows = torch.arange(len(lines)).repeat_interleave(torch.tensor([len(each) for each in words]))
    flat = torch.tensor([word for each in words for word in each])
    out = torch.zeros(len(lines), VOCABULARY)
    return out.index_put_((rows, flat), torch.ones(len(flat)), accumulate=True)


def words(problem: str, fixed: bool, steps: int, on_step: Callable[[], None]) -> None:
    """Trains a classifier on counted words."""
    model = nn.Sequential(nn.Linear(VOCABULARY, 256), nn.ReLU(), nn.Linear(256, CLASSES))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, foreach=True)
    labels = torch.randint(CLASSES, (16,))
    for counts in DataLoader(Texts(steps * 16), 16, collate_fn=bag_at_once if fixed else bag):
        train(model, optimizer, counts, labels)
        on_step()
