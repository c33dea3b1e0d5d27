"""Twenty kinds of training, each a function that yields its losses. They use torch's global random numbers."""

import copy
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

Losses = Iterator[float]
Kind = Callable[[int], Losses]
BATCH, FEATURES = 8, 6
mse = nn.functional.mse_loss


class Stream(IterableDataset[Any]):
    """Random samples without an end."""

    def __iter__(self) -> Iterator[Any]:
        while True:
            yield torch.randn(FEATURES), torch.randn(1)


class Square(torch.autograd.Function):
    """A function with a backward pass of its own."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> torch.Tensor:
        (x,) = ctx.saved_tensors
        return 2 * x * gradients[0]


def net(*more: nn.Module) -> nn.Module:
    return nn.Sequential(nn.Linear(FEATURES, 16), nn.ReLU(), *more, nn.Linear(16, 1))


def batches(steps: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    for _ in range(steps):
        yield torch.randn(BATCH, FEATURES), torch.randn(BATCH, 1)


def plain(make: Callable[[Any], torch.optim.Optimizer], model: Callable[[], nn.Module] = net) -> Kind:
    """Returns the usual loop with this optimizer and model."""

    def train(steps: int) -> Losses:
        module = model()
        optimizer = make(module.parameters())
        for x, y in batches(steps):
            optimizer.zero_grad()
            loss = mse(module(x), y)
            loss.backward()
            optimizer.step()
            yield loss.item()

    return train


def closures(steps: int) -> Losses:
    module = net()
    optimizer = torch.optim.LBFGS(module.parameters(), max_iter=1)
    for x, y in batches(steps):

        def closure(x: torch.Tensor = x, y: torch.Tensor = y) -> torch.Tensor:
            optimizer.zero_grad()
            loss = mse(module(x), y)
            loss.backward()
            return loss

        yield float(optimizer.step(closure))


def accumulation_and_clipping(steps: int) -> Losses:
    module = net()
    optimizer = torch.optim.SGD(module.parameters(), 0.1)
    for number, (x, y) in enumerate(batches(steps)):
        loss = mse(module(x), y)
        (loss / 4).backward()
        if number % 4 == 3:
            nn.utils.clip_grad_norm_(module.parameters(), 0.5)
            optimizer.step()
            optimizer.zero_grad()
        yield loss.item()


def two_optimizers(steps: int) -> Losses:
    maker, judge = nn.Linear(3, FEATURES), net()
    optimizers = [torch.optim.Adam(module.parameters(), 1e-3) for module in (maker, judge)]
    for real, _ in batches(steps):
        made = maker(torch.randn(BATCH, 3))
        for optimizer, loss in zip(
            reversed(optimizers), (judge(made.detach()).mean() - judge(real).mean(), None), strict=True
        ):
            total = -judge(made).mean() if loss is None else loss
            optimizer.zero_grad()
            total.backward()
            optimizer.step()
            yield total.item()


def autocast(steps: int) -> Losses:
    module = net()
    optimizer = torch.optim.AdamW(module.parameters())
    for x, y in batches(steps):
        with torch.autocast("cpu", torch.bfloat16):
            loss = mse(module(x).float(), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss.item()


def scaled(steps: int) -> Losses:
    module, scaler = net(), torch.amp.GradScaler("cpu")
    optimizer = torch.optim.SGD(module.parameters(), 0.1)
    for x, y in batches(steps):
        optimizer.zero_grad()
        loss = mse(module(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        yield loss.item()


def from_loader(steps: int, data: Any = None, **options: Any) -> Losses:
    module = net(nn.Dropout(0.2))
    optimizer = torch.optim.AdamW(module.parameters())
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=steps)
    data = data or TensorDataset(torch.randn(64, FEATURES), torch.randn(64, 1))
    done = 0
    while True:
        for x, y in DataLoader(data, BATCH, **options):
            if done == steps:
                return
            done += 1
            optimizer.zero_grad()
            loss = mse(module(x), y)
            loss.backward()
            optimizer.step()
            schedule.step()
            yield loss.item()


def stream(steps: int) -> Losses:
    return from_loader(steps, Stream())


def shuffled(steps: int) -> Losses:
    return from_loader(steps, shuffle=True)


def workers(steps: int) -> Losses:
    return from_loader(steps, shuffle=True, num_workers=1, persistent_workers=True)


def with_evaluation(steps: int) -> Losses:
    module = net(nn.BatchNorm1d(16))
    optimizer = torch.optim.RMSprop(module.parameters())
    averaged = torch.optim.swa_utils.AveragedModel(module)
    for number, (x, y) in enumerate(batches(steps)):
        optimizer.zero_grad()
        loss = mse(module(x), y)
        loss.backward()
        optimizer.step()
        averaged.update_parameters(module)
        yield loss.item()
        if number % 50 == 49:
            module.eval()
            with torch.no_grad():
                yield sum(mse(copy.deepcopy(averaged)(x), y).item() for x, y in batches(3))
            module.train()


def recomputed(steps: int) -> Losses:
    first, second = net(nn.Dropout(0.5)), nn.Linear(1, 1)
    optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], 0.01)
    for x, y in batches(steps):
        optimizer.zero_grad()
        loss = mse(second(checkpoint(first, x, use_reentrant=False)), y)
        loss.backward()
        optimizer.step()
        yield loss.item()


def recurrent(steps: int) -> Losses:
    cells, head = nn.LSTM(FEATURES, 8, batch_first=True), nn.Linear(8, 1)
    optimizer = torch.optim.Adagrad([*cells.parameters(), *head.parameters()])
    for x, y in batches(steps):
        optimizer.zero_grad()
        loss = mse(head(cells(x.view(BATCH, 1, FEATURES).expand(-1, 3, -1))[0][:, -1]), y)
        loss.backward()
        optimizer.step()
        yield loss.item()


def sparse(steps: int) -> Losses:
    table = nn.Embedding(50, 1, sparse=True)
    optimizer = torch.optim.SparseAdam(table.parameters())
    for _, y in batches(steps):
        optimizer.zero_grad()
        loss = mse(table(torch.randint(0, 50, (BATCH,))), y)
        loss.backward()
        optimizer.step()
        yield loss.item()


def gradient_penalty(steps: int) -> Losses:
    module = nn.Sequential(nn.Linear(FEATURES, 8), nn.Tanh(), nn.Linear(8, 1))
    optimizer = torch.optim.SGD(module.parameters(), 0.01)
    for x, y in batches(steps):
        x.requires_grad_()
        result = module(x)
        (gradient,) = torch.autograd.grad(result.sum(), x, create_graph=True)
        loss = mse(result, y) + gradient.square().sum(1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss.item()


def in_backward(steps: int) -> Losses:
    """Each parameter is updated as soon as its gradient is complete."""
    module = net()
    optimizers = {parameter: torch.optim.SGD([parameter], 0.01) for parameter in module.parameters()}

    def update(parameter: torch.Tensor) -> None:
        optimizers[parameter].step()  # type: ignore[index]
        optimizers[parameter].zero_grad()  # type: ignore[index]

    for parameter in optimizers:
        parameter.register_post_accumulate_grad_hook(update)
    for x, y in batches(steps):
        loss = mse(module(x), y)
        loss.backward()
        yield loss.item()


def without_optimizer(steps: int) -> Losses:
    weight = torch.randn(FEATURES, 1, requires_grad=True)
    for x, y in batches(steps):
        loss = mse(Square.apply(x @ weight), y)
        (gradient,) = torch.autograd.grad(loss, weight)
        with torch.no_grad():
            weight -= 0.001 * gradient
        yield loss.item()


def compiled(steps: int) -> Losses:
    return plain(torch.optim.AdamW, lambda: torch.compile(net(), backend="aot_eager"))(steps)  # type: ignore[return-value]


def convolution() -> nn.Module:
    return nn.Sequential(
        nn.Unflatten(1, (1, FEATURES)), nn.Conv1d(1, 4, 3), nn.BatchNorm1d(4), nn.Flatten(), nn.Linear(16, 1)
    )


KINDS: dict[str, Kind] = {
    "sgd": plain(lambda parameters: torch.optim.SGD(parameters, 0.01, momentum=0.9)),
    "adamw": plain(torch.optim.AdamW),
    "foreach": plain(lambda parameters: torch.optim.Adam(parameters, foreach=True)),
    "fused": plain(lambda parameters: torch.optim.AdamW(parameters, fused=True)),
    "dropout": plain(torch.optim.NAdam, lambda: net(nn.Dropout(0.3))),
    "convolution": plain(torch.optim.Adamax, convolution),
    "closures": closures,
    "accumulation_and_clipping": accumulation_and_clipping,
    "two_optimizers": two_optimizers,
    "autocast": autocast,
    "scaled": scaled,
    "shuffled": shuffled,
    "stream": stream,
    "with_evaluation": with_evaluation,
    "recomputed": recomputed,
    "recurrent": recurrent,
    "sparse": sparse,
    "gradient_penalty": gradient_penalty,
    "in_backward": in_backward,
    "without_optimizer": without_optimizer,
}
SLOW_KINDS: dict[str, Kind] = {"workers": workers, "compiled": compiled}
"""They start processes or compile."""
