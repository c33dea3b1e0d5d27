"""A tiny BERT, trained from scratch with the Trainer of transformers."""

import random
import tempfile
import time
from collections.abc import Callable
from typing import Any

import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainerCallback, TrainingArguments

LENGTH, VOCABULARY = 32, 1000


class Reviews(Dataset[dict[str, Any]]):
    """Texts with a label, and the ids of their words."""

    def __init__(self, length: int) -> None:
        source = random.Random(0)
        self.length = length
        self.ids = torch.tensor([source.choices(range(VOCABULARY), k=LENGTH) for _ in range(64)])
        self.texts = [
            " ".join(f"word{number}" for number in source.choices(range(VOCABULARY), k=1000)) for _ in "8" * 64
        ]

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {"input_ids": self.ids[index % 64], "labels": index % 2, "text": self.texts[index % 64]}


def take_ids(samples: list[dict[str, Any]]) -> dict[str, torch.Tensor]:
    """Returns a batch of ids that were computed before."""
    return {
        "input_ids": torch.stack([sample["input_ids"] for sample in samples]),
        "labels": torch.tensor([sample["labels"] for sample in samples]),
    }


def tokenise(samples: list[dict[str, Any]]) -> dict[str, torch.Tensor]:
    """Returns a batch of ids that are computed from the letters of each word."""
    rows = []
    for sample in samples:
        row = []
        for word in sample["text"].split():
            number = 0
            for letter in word.encode():
                number = (number * 31 + letter) % VOCABULARY  # planted: huggingface/tokenise_in_collator
            row.append(number)
        rows.append(row[:LENGTH])
    return {"input_ids": torch.tensor(rows), "labels": torch.tensor([sample["labels"] for sample in samples])}


class Steps(TrainerCallback):
    """Tells the end of each step."""

    def __init__(self, on_step: Callable[[], None]) -> None:
        self.tell = on_step

    def on_step_end(self, *_: Any, **__: Any) -> None:
        self.tell()


class Notify(TrainerCallback):
    """Reports each step to a server; a pause simulates its answer."""

    def on_optimizer_step(self, *_: Any, **__: Any) -> None:
        time.sleep(0.025)  # planted: huggingface/callback_sleep


def trainer(problem: str, fixed: bool, steps: int, on_step: Callable[[], None]) -> None:
    """Trains a tiny BERT to classify texts."""
    bad = "" if fixed else problem
    model = BertForSequenceClassification(
        BertConfig(vocab_size=VOCABULARY, hidden_size=128, num_hidden_layers=2, num_attention_heads=2,
                   intermediate_size=512, max_position_embeddings=LENGTH)
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder,
            max_steps=steps,
            per_device_train_batch_size=16,
            per_device_eval_batch_size=16,
            use_cpu=True,
            report_to=[],
            disable_tqdm=True,
            remove_unused_columns=False,
            save_total_limit=1,
            eval_strategy="steps" if bad == "evaluation" else "no",
            eval_steps=2,  # planted: huggingface/evaluation
            save_strategy="steps" if bad == "saving" else "no",
            save_steps=2,  # planted: huggingface/saving
            logging_steps=1 if problem == "logging_each_step" else 100,  # planted: huggingface/logging_each_step
        )
        callbacks: list[TrainerCallback] = [*([Notify()] if bad == "callback_sleep" else []), Steps(on_step)]
        collate = tokenise if bad == "tokenise_in_collator" else take_ids
        reviews = Reviews(steps * 16)
        Trainer(model, arguments, collate, reviews, Reviews(48), callbacks=callbacks).train()
