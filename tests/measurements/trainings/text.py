"""Trainings on text: a transformer over words and an LSTM over characters."""

import gc
import random
import re
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

VOCABULARY = 2000
LENGTH = 48
WORDS = [f"w{number:x}" for number in range(VOCABULARY)]


def tokenise(sentence: str) -> list[int]:
    """Returns the ids of the words; each word is searched in the list of all words."""
    words = re.findall(r"\w+", sentence.lower())
    return [WORDS.index(word) for word in words][:LENGTH]  # planted: transformer/tokenise_per_item


class Sentences(Dataset[Tensor]):
    """Sentences of random words; their ids are computed once, or in each access."""

    def __init__(self, per_item: bool, length: int) -> None:
        source = random.Random(0)
        self.per_item, self.length = per_item, length
        self.lines = [" ".join(source.choices(WORDS, k=4 * LENGTH)) for _ in range(64)]
        self.ids = [torch.tensor(tokenise(line)) for line in self.lines]

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> Tensor:
        return torch.tensor(tokenise(self.lines[index % 64])) if self.per_item else self.ids[index % 64]


def top_five(logits: Tensor, ids: Tensor) -> float:
    """Returns the share of tokens that are among the five most likely ones."""
    right = 0
    for scores, token in zip(logits.detach().flatten(0, 1)[:64].tolist(), ids.flatten().tolist(), strict=False):
        ranked = sorted(range(VOCABULARY), key=scores.__getitem__, reverse=True)  # planted: transformer/metric_loop
        right += token in ranked[:5]
    return right / 64


def save(model: nn.Module, path: Path) -> None:
    """Saves the weights; a pause simulates a network file system."""
    torch.save(model.state_dict(), path)  # planted: transformer/checkpoint_slow_disk
    time.sleep(0.05)


def transformer(problem: str, fixed: bool, steps: int, on_step: Callable[[], None]) -> None:
    """Trains a transformer to predict words."""
    bad = "" if fixed else problem
    width, layers = (64, 12) if problem == "for_loop_optimizer" else (128, 3)
    layer = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.0, batch_first=True)
    model = nn.Sequential(
        nn.Embedding(VOCABULARY, width), nn.TransformerEncoder(layer, layers), nn.Linear(width, VOCABULARY)
    )
    fused = bad != "for_loop_optimizer"
    optimizer = torch.optim.AdamW(model.parameters(), foreach=False, fused=fused)
    batch = 2 if problem == "for_loop_optimizer" else 8
    micro_batches = 2 if problem == "accumulation" else 1
    vocabulary = {word: [word, {number}] for number, word in enumerate(WORDS * 20)} if "gc" in problem else {}
    index = [[word, [entry]] for word in WORDS for entry in range(8)] if "gc" in problem else []
    loader = iter(DataLoader(Sentences(bad == "tokenise_per_item", steps * batch * micro_batches), batch))
    with tempfile.TemporaryDirectory() as folder:
        for step in range(steps):
            optimizer.zero_grad()
            for _ in range(micro_batches):
                ids = next(loader)
                logits = model(ids[:, :-1])
                loss = functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
                (loss / micro_batches).backward()  # planted: transformer/accumulation
            optimizer.step()  # planted: transformer/for_loop_optimizer
            if bad == "gc_many_objects":
                gc.collect()  # planted: transformer/gc_many_objects
            if bad == "metric_loop":
                top_five(logits, ids[:, 1:])
            if bad == "checkpoint_slow_disk" and step % 2 == 0:
                save(model, Path(folder) / "last.pt")
            on_step()
    del vocabulary, index


class Cell(nn.Module):
    """An LSTM written out: a step of time at a time, a gate at a time."""

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        self.hidden = hidden
        self.gates = nn.ModuleList(nn.Linear(inputs + hidden, hidden) for _ in range(4))

    def forward(self, x: Tensor) -> tuple[Tensor, None]:
        state = memory = x.new_zeros(len(x), self.hidden)
        states = []
        for now in x.unbind(1):
            both = torch.cat([now, state], 1)
            take, forget, give = (torch.sigmoid(gate(both)) for gate in list(self.gates)[:3])  # planted: lstm/own_cell
            memory = forget * memory + take * torch.tanh(self.gates[3](both))
            state = give * torch.tanh(memory)
            states.append(state)
        return torch.stack(states, 1), None


def sample(embed: nn.Module, lstm: nn.Module, head: nn.Module, length: int) -> list[int]:
    """Returns text that the model writes, one character at a time."""
    text, state = [0], None
    with torch.no_grad():
        for _ in range(length):
            out, state = lstm(embed(torch.tensor([[text[-1]]])), state)  # planted: lstm/sampling
            text.append(int(torch.multinomial(head(out)[0, 0].softmax(0), 1)))
    return text


def push_progress(loss: Tensor) -> None:
    """Reports to a server; a pause simulates its answer."""
    time.sleep(0.02)  # planted: lstm/progress_sleep


def lstm(problem: str, fixed: bool, steps: int, on_step: Callable[[], None]) -> None:
    """Trains an LSTM to predict characters."""
    bad = "" if fixed else problem
    batch = 8 if problem == "own_cell" else 32
    embed, head = nn.Embedding(100, 192), nn.Linear(192, 100)
    recurrent = Cell(192, 192) if bad == "own_cell" else nn.LSTM(192, 192, batch_first=True)
    weights = [weight for part in (embed, recurrent, head) for weight in part.parameters()]
    optimizer = torch.optim.Adam(weights, fused=True)
    text = torch.randint(100, (64, batch, 21))
    for step in range(steps):
        characters = text[step % 64]
        out, _ = recurrent(embed(characters[:, :-1]))
        loss = functional.cross_entropy(head(out).flatten(0, 1), characters[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        if problem == "clipped":
            nn.utils.clip_grad_norm_(weights, 1.0).item()  # planted: lstm/clipped
        optimizer.step()
        if bad == "sampling" and step % 2 == 0:
            sample(embed, recurrent, head, 80)
        if bad == "progress_sleep":
            push_progress(loss)
        on_step()
