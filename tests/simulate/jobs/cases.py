"""Simulated jobs with one or two planted causes, healthy jobs with what resembles a cause, and the fix of each."""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from simulate.jobs.topologies import FIRST_STEP, MAX_EXPERT_RANKS, PER_HOST, STAGES, Faults, Shape

STEPS = 7
_PIPELINES = ("pipeline", "megatron")
_SCHEDULES = ("pipeline", "pipeline", "interleaved", "zero_bubble")
"""1F1B, and what takes its place in half of the jobs with a pipeline."""

_PIPELINE_SIZES = (4, 8, 8, 16, 16, 32)
"""In the smallest, each stage has one rank."""

_SIZES = {"megatron": (32,)} | dict.fromkeys(_SCHEDULES, _PIPELINE_SIZES)
_USUAL_SIZES = (8, 8, 8, 16, 16, 32)


@dataclass(frozen=True)
class Case:
    """A job: its topology, size and faults; the planted causes with their ranks (empty: any), and the faults after all
    fixes."""

    topology: str
    shape: Shape
    faults: Faults
    causes: dict[str, frozenset[int]] = field(default_factory=dict)
    fixed: Faults = field(default_factory=Faults)


Planter = Callable[[Random, "Draft"], None]


@dataclass
class Draft:
    """A case in the making."""

    topology: str
    ranks: int
    faults: Faults = field(default_factory=Faults)
    causes: dict[str, frozenset[int]] = field(default_factory=dict)
    free: tuple[str, ...] = ()  # groups and "a->b" whose transfers take no time after the fix


def _slow_rank(random: Random, draft: Draft) -> None:
    rank = random.randrange(draft.ranks)
    draft.faults.host[rank] = random.uniform(0.12, 0.6)
    draft.causes["slow_rank"] = frozenset({rank})


def _slow_host(random: Random, draft: Draft) -> None:
    host = random.randrange(draft.ranks // PER_HOST)
    extra = random.uniform(0.12, 0.6)
    members = range(host * PER_HOST, (host + 1) * PER_HOST)
    draft.faults.host.update({rank: extra * random.uniform(0.95, 1.05) for rank in members})
    draft.causes["slow_host"] = frozenset(members)


def _throttled_rank(random: Random, draft: Draft) -> None:
    rank = random.randrange(draft.ranks)
    draft.faults.device[rank] = random.uniform(1.15, 1.6)
    draft.causes["throttled_rank"] = frozenset({rank})


def _rank_input(random: Random, draft: Draft) -> None:
    rank = random.randrange(draft.ranks)
    draft.faults.input[rank] = random.uniform(0.12, 0.6)
    draft.causes["rank_input"] = frozenset({rank})


def _rank_interruption(random: Random, draft: Draft) -> None:
    steps = random.sample(range(FIRST_STEP, FIRST_STEP + STEPS), random.choice((1, 2)))
    draft.faults.pauses.update({(0, step): random.uniform(0.6, 2.0) for step in steps})
    draft.causes["rank_interruption"] = frozenset({0})


def _unsynchronised_gc(random: Random, draft: Draft) -> None:
    """Each collection is on another rank in another step."""
    ranks = random.sample(range(draft.ranks), min(random.randint(4, 6), draft.ranks))
    steps = random.sample(range(FIRST_STEP, FIRST_STEP + STEPS), len(ranks))
    length = random.uniform(0.3, 0.9)
    for rank, step in zip(ranks, steps, strict=True):
        draft.faults.collections[rank, step] = length * random.uniform(0.9, 1.1)
    draft.causes["unsynchronised_gc"] = frozenset(ranks)


def _stage_imbalance(random: Random, draft: Draft) -> None:
    stage = random.choice((0, 3, 3))
    draft.faults.stage[stage] = random.uniform(1.2, 1.7)
    replicas = draft.ranks // STAGES
    draft.causes["stage_imbalance"] = frozenset(range(stage * replicas, (stage + 1) * replicas))


def _data_imbalance(random: Random, draft: Draft) -> None:
    in_stages = draft.topology in (*_PIPELINES, *_SCHEDULES)  # where all stages get the batch of the first one
    if not in_stages and random.random() < 0.3:
        rank = random.randrange(draft.ranks)
        draft.faults.fixed_data[rank] = random.uniform(1.15, 1.6)
        draft.causes["data_imbalance"] = frozenset({rank})
        return
    draft.faults.data = random.uniform(0.12, 0.3)
    draft.causes["data_imbalance"] = frozenset()


def _expert_imbalance(random: Random, draft: Draft) -> None:
    for rank in random.sample(range(draft.ranks), random.randint(1, 2)):
        draft.faults.experts[rank] = random.uniform(1.6, 3.0)
    draft.causes["expert_imbalance"] = frozenset(draft.faults.experts)


def _slow_link(random: Random, draft: Draft) -> None:
    if draft.topology in _SCHEDULES:
        replicas = draft.ranks // STAGES
        sender = random.randrange(draft.ranks - replicas)
        draft.faults.link[f"{sender}->{sender + replicas}"] = random.uniform(15, 40)
        draft.causes["slow_link"] = frozenset({sender, sender + replicas})
        return
    group = random.randrange(draft.ranks // PER_HOST)
    draft.faults.link[f"t{group}"] = random.uniform(2.5, 6)
    draft.causes["slow_link"] = frozenset(range(group * PER_HOST, (group + 1) * PER_HOST))


def _pipeline_bubble(random: Random, draft: Draft) -> None:
    draft.faults.microbatches = random.choice((2, 3, 4, 5))
    draft.causes["pipeline_bubble"] = frozenset()


def _exposed_collectives(random: Random, draft: Draft) -> None:
    draft.faults.overlap = False
    draft.faults.wire = random.uniform(1.5, 4.0)
    draft.causes["exposed_collectives"] = frozenset()


def _exposed_layers(random: Random, draft: Draft) -> None:
    """The groups of one kind of layers, all alike."""
    kind, size = ("e", min(draft.ranks, MAX_EXPERT_RANKS)) if draft.topology == "experts" else ("t", PER_HOST)
    draft.free = tuple(f"{kind}{number}" for number in range(draft.ranks // size))
    draft.faults.link.update(dict.fromkeys(draft.free, random.uniform(4, 8)))
    draft.causes["exposed_layers"] = frozenset()


def _exposed_messages(random: Random, draft: Draft) -> None:
    replicas = draft.ranks // STAGES
    ahead = {(rank, (rank + replicas) % draft.ranks) for rank in range(draft.ranks)}
    draft.free = tuple(f"{a}->{b}" for pair in sorted(ahead) for a, b in (pair, pair[::-1]))
    draft.faults.link.update(dict.fromkeys(draft.free, random.uniform(6, 12)))
    draft.causes["exposed_messages"] = frozenset()


BOUNDED = ("pipeline_bubble", "exposed_layers", "exposed_messages")
"""Causes whose fix is not simulated."""

_ANY = ("data", "sharded", "tensor", "experts", *_PIPELINES)
PLANTERS: dict[str, tuple[Planter, tuple[str, ...]]] = {
    "slow_rank": (_slow_rank, _ANY),
    "slow_host": (_slow_host, ("data", "sharded", "tensor", "experts", "megatron")),
    "slow_link": (_slow_link, ("tensor", *_PIPELINES)),
    "stage_imbalance": (_stage_imbalance, _PIPELINES),
    "data_imbalance": (_data_imbalance, ("data", "sharded", "tensor", *_PIPELINES)),
    "expert_imbalance": (_expert_imbalance, ("experts",)),
    "rank_input": (_rank_input, _ANY),
    "rank_interruption": (_rank_interruption, _ANY),
    "unsynchronised_gc": (_unsynchronised_gc, _ANY),
    "throttled_rank": (_throttled_rank, _ANY),
    "pipeline_bubble": (_pipeline_bubble, _PIPELINES),
    "exposed_collectives": (_exposed_collectives, ("data", "sharded")),
    "exposed_layers": (_exposed_layers, ("tensor", "experts", "megatron")),
    "exposed_messages": (_exposed_messages, _PIPELINES),
}


def _size(random: Random, topology: str, least: int = 8) -> int:
    return random.choice([size for size in _SIZES.get(topology, _USUAL_SIZES) if size >= least])


def planted(cause: str, seed: int, ranks: int = 0) -> Case:
    """Returns a job with one planted cause, of `ranks` ranks or of a small random size."""
    random = Random(f"{cause} {seed}")
    plant, topologies = PLANTERS[cause]
    topology = _scheduled(random.choice(topologies), seed) if cause != "pipeline_bubble" else random.choice(topologies)
    draft = Draft(topology, ranks or _size(random, topology))
    plant(random, draft)
    return _case(draft, seed, random)


def _scheduled(topology: str, seed: int) -> str:
    return Random(f"schedule {seed}").choice(_SCHEDULES) if topology == "pipeline" else topology


def planted_two(seed: int) -> Case:
    """Returns a job with two planted causes, on different ranks where they are of ranks."""
    random = Random(f"two {seed}")
    first, second = random.sample([name for name in PLANTERS if name not in BOUNDED], 2)
    common = sorted(set(PLANTERS[first][1]) & set(PLANTERS[second][1]))
    if not common:
        return planted_two(seed + 1_000_003)
    topology = _scheduled(random.choice(common), seed)
    draft = Draft(topology, _size(random, topology, least=16))
    PLANTERS[first][0](random, draft)
    PLANTERS[second][0](random, draft)
    ranks = list(draft.causes.values())
    if ranks[0] & ranks[1]:
        return planted_two(seed + 1_000_003)
    return _case(draft, seed, random)


def healthy(seed: int, ranks: int = 0) -> Case:
    """Returns a job without a cause: with more noise, slightly different stages, or the usual bubble."""
    random = Random(f"healthy {seed}")
    topology = _scheduled(random.choice(_ANY), seed)
    draft = Draft(topology, ranks or _size(random, topology))
    draft.faults.microbatches = random.choice((8, 12, 16, 24))
    if random.random() < 0.5:
        draft.faults.stage = {stage: random.uniform(0.985, 1.015) for stage in range(4)}
    return _case(draft, seed, random, noise=random.choice((0.005, 0.01, 0.03)))


def _case(draft: Draft, seed: int, random: Random, noise: float = 0.01) -> Case:
    shape = Shape(ranks=draft.ranks, steps=STEPS, seed=seed, noise=noise)
    return Case(draft.topology, shape, draft.faults, draft.causes, _fixed(draft))


def _fixed(draft: Draft) -> Faults:
    """Returns the faults after all fixes: work that was unbalanced is spread evenly, its amount stays."""
    faults, ranks = draft.faults, draft.ranks

    def mean(factors: dict[int, float], count: int) -> float:
        return sum(factors.get(number, 1.0) for number in range(count)) / count

    steps = sorted({step for _, step in faults.collections})
    return Faults(
        work=mean(faults.fixed_data, ranks),
        experts=dict.fromkeys(range(ranks), mean(faults.experts, ranks)) if faults.experts else {},
        stage=dict.fromkeys(range(STAGES), mean(faults.stage, STAGES)),
        collections={(rank, steps[0]): time for (rank, _), time in faults.collections.items()},
        microbatches=2 * faults.microbatches if 0 < faults.microbatches < 8 else faults.microbatches,
        wire=faults.wire,
        link=dict.fromkeys(draft.free, 1e-9),
    )
