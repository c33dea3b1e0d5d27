"""Reinforcement learning: an actor and critic that balance poles, on an environment of our own."""

import math
import time
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

HORIZON, POLES, EPOCHS = 16, 32, 2


class Poles:
    """Carts with poles to balance: state is position, speed, angle and angular speed of each."""

    def __init__(self, count: int) -> None:
        self.random = np.random.default_rng(0)
        self.state = self.random.uniform(-0.05, 0.05, (count, 4))

    def step(self, right: np.ndarray) -> np.ndarray:
        """Moves all carts for 20 ms. Returns the rewards; poles that fell are set up again."""
        _, speed, angle, turn = self.state.T
        force = np.where(right, 10.0, -10.0)
        push = (force + 0.05 * turn**2 * np.sin(angle)) / 1.1
        bend = (9.8 * np.sin(angle) - np.cos(angle) * push) / (0.5 * (4 / 3 - 0.1 * np.cos(angle) ** 2 / 1.1))
        moved = push - 0.05 * bend * np.cos(angle) / 1.1
        self.state += 0.02 * np.stack([speed, moved, turn, bend], 1)
        fell = (np.abs(self.state[:, 0]) > 2.4) | (np.abs(self.state[:, 2]) > math.pi / 15)
        self.state[fell] = self.random.uniform(-0.05, 0.05, (int(fell.sum()), 4))
        return np.where(fell, 0.0, 1.0)

    def render(self) -> None:
        """Waits for the display."""
        time.sleep(0.02)  # planted: rl/render


def act_one_by_one(policy: nn.Module, poles: list[Poles]) -> tuple[Tensor, Tensor, Tensor]:
    """Returns states, actions and rewards of one time step; every pole asks the policy itself."""
    states, actions, rewards = [], [], []
    for pole in poles:
        states.append(torch.tensor(pole.state, dtype=torch.float32))
        logits = policy(states[-1])[:, :2]  # planted: rl/one_by_one
        actions.append(torch.distributions.Categorical(logits=logits).sample())
        rewards.append(torch.tensor(pole.step(actions[-1].numpy() == 1), dtype=torch.float32))
    return torch.cat(states), torch.cat(actions), torch.cat(rewards)


def act(policy: nn.Module, poles: Poles) -> tuple[Tensor, Tensor, Tensor]:
    """Returns states, actions and rewards of one time step."""
    states = torch.tensor(poles.state, dtype=torch.float32)
    actions = torch.multinomial(policy(states)[:, :2].softmax(1), 1)[:, 0]
    return states, actions, torch.tensor(poles.step(actions.numpy() == 1), dtype=torch.float32)


def returns_by_element(rewards: Tensor) -> Tensor:
    """Returns the discounted sums of later rewards, computed element by element."""
    sums = rewards.clone()
    for now in reversed(range(len(rewards) - 1)):
        for pole in range(rewards.shape[1]):
            sums[now, pole] += 0.99 * sums[now + 1, pole]  # planted: rl/returns_by_element
    return sums


def returns(rewards: Tensor) -> Tensor:
    """Returns the discounted sums of later rewards."""
    distance = torch.arange(len(rewards))[None] - torch.arange(len(rewards))[:, None]
    return torch.where(distance >= 0, 0.99 ** distance.float(), 0.0) @ rewards


def actor_critic(problem: str, fixed: bool, steps: int, on_step: Callable[[], None]) -> None:
    """Trains an actor and critic on rollouts."""
    bad = "" if fixed else problem
    hidden = 512 if problem == "large_learner" else 384
    policy = nn.Sequential(nn.Linear(4, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh(), nn.Linear(hidden, 3))
    optimizer = torch.optim.Adam(policy.parameters(), fused=True)
    poles, each = Poles(POLES), [Poles(1) for _ in range(POLES)]
    for _ in range(steps):
        with torch.no_grad():
            moves = [
                act_one_by_one(policy, each) if bad == "one_by_one" else act(policy, poles) for _ in range(HORIZON)
            ]
        states, actions, rewards = (torch.stack(part) for part in zip(*moves, strict=True))
        aims = returns_by_element(rewards) if bad == "returns_by_element" else returns(rewards)
        for _ in range(6 if problem == "large_learner" else EPOCHS):  # planted: rl/large_learner
            out = policy(states)
            chosen = out[..., :2].log_softmax(2).gather(2, actions[..., None])[..., 0]
            advantage = aims - out[..., 2]
            loss = advantage.square().mean() - (chosen * advantage.detach()).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if bad == "render":
            poles.render()
        on_step()
