"""Runs the slow half of one of the demo's trainings without end: `demo_program.py NAME`."""

import importlib
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import torch

from demo.pairs import PAIRS

STEPS = 100_000

if __name__ == "__main__":
    pair = PAIRS[sys.argv[1]]
    train = importlib.import_module(f"demo.problems.{pair.script or pair.name}").train
    train(pair.variants["slow"], STEPS, lambda: None, torch.device("cpu"))
