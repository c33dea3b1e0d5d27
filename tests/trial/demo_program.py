"""Runs a half of one of the demo's trainings without end: `demo_program.py NAME [fixed]`, without it the slow one."""

import importlib
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import torch

from demo.pairs import PAIRS

STEPS = 100_000

if __name__ == "__main__":
    pair, half = PAIRS[sys.argv[1]], "fixed" if "fixed" in sys.argv[2:] else "slow"
    train = importlib.import_module(f"demo.problems.{pair.script or pair.name}").train
    train(pair.variants[half], STEPS, lambda: None, torch.device("cpu"))
