"""A training on a table: a perceptron over categories and numbers."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

ROWS, NUMBERS, CATEGORIES = 4096, 32, 64


def table() -> pd.DataFrame:
    """Returns customers with numbers, a group and a label."""
    source = np.random.default_rng(0)
    frame = pd.DataFrame(source.normal(size=(ROWS, NUMBERS)), columns=[f"x{number}" for number in range(NUMBERS)])
    return frame.assign(group=source.integers(200, size=ROWS), label=source.integers(2, size=ROWS))


def aggregated(frame: pd.DataFrame, step: int) -> Tensor:
    """Returns rows relative to the mean of their group."""
    rows = frame.sample(256, random_state=step)
    means = frame.groupby("group").transform("mean")  # planted: tabular/pandas_in_loop
    return torch.tensor((rows - means.loc[rows.index]).iloc[:, :NUMBERS].to_numpy(), dtype=torch.float32)


class Rows(Dataset[tuple[Tensor, Tensor]]):
    """The rows of the table, read from the data frame one by one."""

    def __init__(self, frame: pd.DataFrame, length: int) -> None:
        self.frame, self.length = frame, length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        row = self.frame.iloc[index % ROWS]  # planted: tabular/row_by_row
        return torch.tensor(row.iloc[:NUMBERS].to_numpy(), dtype=torch.float32), torch.tensor(int(row["label"]))


class Columns(nn.Module):
    """Embeds each categorical column with its own table, or all with one table."""

    def __init__(self, separate: bool) -> None:
        super().__init__()
        tables = CATEGORIES if separate else 1
        self.tables = nn.ModuleList(nn.Embedding(50 * CATEGORIES // tables, 8) for _ in range(tables))
        self.register_buffer("offsets", torch.arange(CATEGORIES) * 50)

    def forward(self, categories: Tensor) -> Tensor:
        if len(self.tables) == 1:
            return self.tables[0](categories + self.offsets).flatten(1)
        parts = [
            table(categories[:, number]) for number, table in enumerate(self.tables)
        ]  # planted: tabular/column_by_column
        return torch.cat(parts, 1)


def batches(problem: str, bad: str, steps: int) -> list[tuple[Tensor, Tensor]] | DataLoader[tuple[Tensor, Tensor]]:
    """Returns the batches of numbers and labels."""
    frame = table()
    if bad == "row_by_row":
        return DataLoader(Rows(frame, steps * 256), 256)
    rows = 8 if bad == "small_batch" else 256  # planted: tabular/small_batch
    numbers = torch.tensor(frame.iloc[:, :NUMBERS].to_numpy(), dtype=torch.float32)
    labels = torch.tensor(frame["label"].to_numpy())
    return [(numbers[:rows], labels[:rows])] * steps


def perceptron(problem: str, fixed: bool, steps: int, on_step: Callable[[], None]) -> None:
    """Trains a perceptron to predict a label."""
    bad = "" if fixed else problem
    if problem == "threads_oversubscribed":
        torch.set_num_threads(2 if fixed else 16)  # planted: tabular/threads_oversubscribed
    if problem == "threads_too_few":
        torch.set_num_threads(2 if fixed else 1)  # planted: tabular/threads_too_few
    hidden = {"column_by_column": 128, "small_batch": 128, "pandas_in_loop": 512, "row_by_row": 512}.get(problem, 1024)
    columns = Columns(bad == "column_by_column") if problem == "column_by_column" else None
    inputs = NUMBERS + (8 * CATEGORIES if columns else 0)
    head = nn.Sequential(
        nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 2)
    )
    model = nn.ModuleList([head, *([columns] if columns else [])])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, foreach=True)
    categories = torch.randint(50, (256, CATEGORIES))
    frame = table()
    history = []
    for step, (numbers, labels) in enumerate(batches(problem, bad, steps)):
        if bad == "pandas_in_loop":
            numbers = aggregated(frame, step)
        inputs = torch.cat([numbers, columns(categories)], 1) if columns else numbers
        loss = functional.cross_entropy(head(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if problem == "losses_in_a_list":
            history.append(loss)  # planted: tabular/losses_in_a_list
        on_step()
