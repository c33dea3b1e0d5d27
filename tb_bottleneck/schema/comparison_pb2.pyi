from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Comparison(_message.Message):
    __slots__ = ("schema", "a", "b", "per", "speedup", "noise", "headline", "by_regime", "expected", "causes", "context", "a_ns", "b_ns", "significant", "test", "notes", "comparable", "a_batch", "b_batch", "a_steps", "b_steps", "difference", "similarity", "mean_speedup", "by_means", "unprofiled", "run")
    SCHEMA_FIELD_NUMBER: _ClassVar[int]
    A_FIELD_NUMBER: _ClassVar[int]
    B_FIELD_NUMBER: _ClassVar[int]
    PER_FIELD_NUMBER: _ClassVar[int]
    SPEEDUP_FIELD_NUMBER: _ClassVar[int]
    NOISE_FIELD_NUMBER: _ClassVar[int]
    HEADLINE_FIELD_NUMBER: _ClassVar[int]
    BY_REGIME_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_FIELD_NUMBER: _ClassVar[int]
    CAUSES_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    A_NS_FIELD_NUMBER: _ClassVar[int]
    B_NS_FIELD_NUMBER: _ClassVar[int]
    SIGNIFICANT_FIELD_NUMBER: _ClassVar[int]
    TEST_FIELD_NUMBER: _ClassVar[int]
    NOTES_FIELD_NUMBER: _ClassVar[int]
    COMPARABLE_FIELD_NUMBER: _ClassVar[int]
    A_BATCH_FIELD_NUMBER: _ClassVar[int]
    B_BATCH_FIELD_NUMBER: _ClassVar[int]
    A_STEPS_FIELD_NUMBER: _ClassVar[int]
    B_STEPS_FIELD_NUMBER: _ClassVar[int]
    DIFFERENCE_FIELD_NUMBER: _ClassVar[int]
    SIMILARITY_FIELD_NUMBER: _ClassVar[int]
    MEAN_SPEEDUP_FIELD_NUMBER: _ClassVar[int]
    BY_MEANS_FIELD_NUMBER: _ClassVar[int]
    UNPROFILED_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    schema: int
    a: str
    b: str
    per: str
    speedup: float
    noise: float
    headline: str
    by_regime: _containers.RepeatedCompositeFieldContainer[RegimeDelta]
    expected: Expected
    causes: CausesChanged
    context: _containers.RepeatedCompositeFieldContainer[ContextRow]
    a_ns: float
    b_ns: float
    significant: bool
    test: str
    notes: _containers.RepeatedScalarFieldContainer[str]
    comparable: bool
    a_batch: BatchSize
    b_batch: BatchSize
    a_steps: int
    b_steps: int
    difference: str
    similarity: Similarity
    mean_speedup: float
    by_means: bool
    unprofiled: UnprofiledDifference
    run: RunDifference
    def __init__(self, schema: _Optional[int] = ..., a: _Optional[str] = ..., b: _Optional[str] = ..., per: _Optional[str] = ..., speedup: _Optional[float] = ..., noise: _Optional[float] = ..., headline: _Optional[str] = ..., by_regime: _Optional[_Iterable[_Union[RegimeDelta, _Mapping]]] = ..., expected: _Optional[_Union[Expected, _Mapping]] = ..., causes: _Optional[_Union[CausesChanged, _Mapping]] = ..., context: _Optional[_Iterable[_Union[ContextRow, _Mapping]]] = ..., a_ns: _Optional[float] = ..., b_ns: _Optional[float] = ..., significant: bool = ..., test: _Optional[str] = ..., notes: _Optional[_Iterable[str]] = ..., comparable: bool = ..., a_batch: _Optional[_Union[BatchSize, _Mapping]] = ..., b_batch: _Optional[_Union[BatchSize, _Mapping]] = ..., a_steps: _Optional[int] = ..., b_steps: _Optional[int] = ..., difference: _Optional[str] = ..., similarity: _Optional[_Union[Similarity, _Mapping]] = ..., mean_speedup: _Optional[float] = ..., by_means: bool = ..., unprofiled: _Optional[_Union[UnprofiledDifference, _Mapping]] = ..., run: _Optional[_Union[RunDifference, _Mapping]] = ...) -> None: ...

class RunDifference(_message.Message):
    __slots__ = ("a_ns", "b_ns", "speedup", "low", "high", "difference", "a_steps", "b_steps")
    A_NS_FIELD_NUMBER: _ClassVar[int]
    B_NS_FIELD_NUMBER: _ClassVar[int]
    SPEEDUP_FIELD_NUMBER: _ClassVar[int]
    LOW_FIELD_NUMBER: _ClassVar[int]
    HIGH_FIELD_NUMBER: _ClassVar[int]
    DIFFERENCE_FIELD_NUMBER: _ClassVar[int]
    A_STEPS_FIELD_NUMBER: _ClassVar[int]
    B_STEPS_FIELD_NUMBER: _ClassVar[int]
    a_ns: float
    b_ns: float
    speedup: float
    low: float
    high: float
    difference: str
    a_steps: int
    b_steps: int
    def __init__(self, a_ns: _Optional[float] = ..., b_ns: _Optional[float] = ..., speedup: _Optional[float] = ..., low: _Optional[float] = ..., high: _Optional[float] = ..., difference: _Optional[str] = ..., a_steps: _Optional[int] = ..., b_steps: _Optional[int] = ...) -> None: ...

class UnprofiledDifference(_message.Message):
    __slots__ = ("a_ns", "b_ns", "speedup", "noise", "difference", "test", "a_steps", "b_steps")
    A_NS_FIELD_NUMBER: _ClassVar[int]
    B_NS_FIELD_NUMBER: _ClassVar[int]
    SPEEDUP_FIELD_NUMBER: _ClassVar[int]
    NOISE_FIELD_NUMBER: _ClassVar[int]
    DIFFERENCE_FIELD_NUMBER: _ClassVar[int]
    TEST_FIELD_NUMBER: _ClassVar[int]
    A_STEPS_FIELD_NUMBER: _ClassVar[int]
    B_STEPS_FIELD_NUMBER: _ClassVar[int]
    a_ns: float
    b_ns: float
    speedup: float
    noise: float
    difference: str
    test: str
    a_steps: int
    b_steps: int
    def __init__(self, a_ns: _Optional[float] = ..., b_ns: _Optional[float] = ..., speedup: _Optional[float] = ..., noise: _Optional[float] = ..., difference: _Optional[str] = ..., test: _Optional[str] = ..., a_steps: _Optional[int] = ..., b_steps: _Optional[int] = ...) -> None: ...

class Similarity(_message.Message):
    __slots__ = ("share", "same_work", "basis")
    SHARE_FIELD_NUMBER: _ClassVar[int]
    SAME_WORK_FIELD_NUMBER: _ClassVar[int]
    BASIS_FIELD_NUMBER: _ClassVar[int]
    share: float
    same_work: bool
    basis: str
    def __init__(self, share: _Optional[float] = ..., same_work: bool = ..., basis: _Optional[str] = ...) -> None: ...

class RegimeDelta(_message.Message):
    __slots__ = ("regime", "a_ns", "b_ns", "delta_ns", "title")
    REGIME_FIELD_NUMBER: _ClassVar[int]
    A_NS_FIELD_NUMBER: _ClassVar[int]
    B_NS_FIELD_NUMBER: _ClassVar[int]
    DELTA_NS_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    regime: str
    a_ns: float
    b_ns: float
    delta_ns: float
    title: str
    def __init__(self, regime: _Optional[str] = ..., a_ns: _Optional[float] = ..., b_ns: _Optional[float] = ..., delta_ns: _Optional[float] = ..., title: _Optional[str] = ...) -> None: ...

class BatchSize(_message.Message):
    __slots__ = ("samples", "basis")
    SAMPLES_FIELD_NUMBER: _ClassVar[int]
    BASIS_FIELD_NUMBER: _ClassVar[int]
    samples: float
    basis: str
    def __init__(self, samples: _Optional[float] = ..., basis: _Optional[str] = ...) -> None: ...

class Expected(_message.Message):
    __slots__ = ("speedup", "low", "high", "by_regime", "remainder", "shortfall", "basis", "assumptions", "b_ns", "kernels_speedup")
    SPEEDUP_FIELD_NUMBER: _ClassVar[int]
    LOW_FIELD_NUMBER: _ClassVar[int]
    HIGH_FIELD_NUMBER: _ClassVar[int]
    BY_REGIME_FIELD_NUMBER: _ClassVar[int]
    REMAINDER_FIELD_NUMBER: _ClassVar[int]
    SHORTFALL_FIELD_NUMBER: _ClassVar[int]
    BASIS_FIELD_NUMBER: _ClassVar[int]
    ASSUMPTIONS_FIELD_NUMBER: _ClassVar[int]
    B_NS_FIELD_NUMBER: _ClassVar[int]
    KERNELS_SPEEDUP_FIELD_NUMBER: _ClassVar[int]
    speedup: float
    low: float
    high: float
    by_regime: _containers.RepeatedCompositeFieldContainer[ExpectedRegime]
    remainder: _containers.RepeatedCompositeFieldContainer[Shortfall]
    shortfall: _containers.RepeatedCompositeFieldContainer[Shortfall]
    basis: str
    assumptions: _containers.RepeatedScalarFieldContainer[str]
    b_ns: float
    kernels_speedup: float
    def __init__(self, speedup: _Optional[float] = ..., low: _Optional[float] = ..., high: _Optional[float] = ..., by_regime: _Optional[_Iterable[_Union[ExpectedRegime, _Mapping]]] = ..., remainder: _Optional[_Iterable[_Union[Shortfall, _Mapping]]] = ..., shortfall: _Optional[_Iterable[_Union[Shortfall, _Mapping]]] = ..., basis: _Optional[str] = ..., assumptions: _Optional[_Iterable[str]] = ..., b_ns: _Optional[float] = ..., kernels_speedup: _Optional[float] = ...) -> None: ...

class ExpectedRegime(_message.Message):
    __slots__ = ("regime", "ratio", "because", "expected_ns")
    REGIME_FIELD_NUMBER: _ClassVar[int]
    RATIO_FIELD_NUMBER: _ClassVar[int]
    BECAUSE_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_NS_FIELD_NUMBER: _ClassVar[int]
    regime: str
    ratio: float
    because: str
    expected_ns: float
    def __init__(self, regime: _Optional[str] = ..., ratio: _Optional[float] = ..., because: _Optional[str] = ..., expected_ns: _Optional[float] = ...) -> None: ...

class Shortfall(_message.Message):
    __slots__ = ("cause", "share", "because", "regime")
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    SHARE_FIELD_NUMBER: _ClassVar[int]
    BECAUSE_FIELD_NUMBER: _ClassVar[int]
    REGIME_FIELD_NUMBER: _ClassVar[int]
    cause: str
    share: float
    because: str
    regime: str
    def __init__(self, cause: _Optional[str] = ..., share: _Optional[float] = ..., because: _Optional[str] = ..., regime: _Optional[str] = ...) -> None: ...

class ComparisonAnswer(_message.Message):
    __slots__ = ("a", "b", "state", "progress", "comparison", "problem")
    A_FIELD_NUMBER: _ClassVar[int]
    B_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    COMPARISON_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    a: str
    b: str
    state: str
    progress: float
    comparison: Comparison
    problem: str
    def __init__(self, a: _Optional[str] = ..., b: _Optional[str] = ..., state: _Optional[str] = ..., progress: _Optional[float] = ..., comparison: _Optional[_Union[Comparison, _Mapping]] = ..., problem: _Optional[str] = ...) -> None: ...

class CausesChanged(_message.Message):
    __slots__ = ("gained", "lost")
    GAINED_FIELD_NUMBER: _ClassVar[int]
    LOST_FIELD_NUMBER: _ClassVar[int]
    gained: _containers.RepeatedScalarFieldContainer[str]
    lost: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, gained: _Optional[_Iterable[str]] = ..., lost: _Optional[_Iterable[str]] = ...) -> None: ...

class ContextRow(_message.Message):
    __slots__ = ("key", "a", "b", "title")
    KEY_FIELD_NUMBER: _ClassVar[int]
    A_FIELD_NUMBER: _ClassVar[int]
    B_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    key: str
    a: str
    b: str
    title: str
    def __init__(self, key: _Optional[str] = ..., a: _Optional[str] = ..., b: _Optional[str] = ..., title: _Optional[str] = ...) -> None: ...

class WhatIf(_message.Message):
    __slots__ = ("schema", "run", "changes", "step_ns", "after", "by_regime", "regime", "headline", "fix_first", "assumptions", "notes", "basis", "per", "memory")
    SCHEMA_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    STEP_NS_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    BY_REGIME_FIELD_NUMBER: _ClassVar[int]
    REGIME_FIELD_NUMBER: _ClassVar[int]
    HEADLINE_FIELD_NUMBER: _ClassVar[int]
    FIX_FIRST_FIELD_NUMBER: _ClassVar[int]
    ASSUMPTIONS_FIELD_NUMBER: _ClassVar[int]
    NOTES_FIELD_NUMBER: _ClassVar[int]
    BASIS_FIELD_NUMBER: _ClassVar[int]
    PER_FIELD_NUMBER: _ClassVar[int]
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    schema: int
    run: str
    changes: _containers.RepeatedScalarFieldContainer[str]
    step_ns: float
    after: Prediction
    by_regime: _containers.RepeatedCompositeFieldContainer[RegimeDelta]
    regime: str
    headline: str
    fix_first: _containers.RepeatedCompositeFieldContainer[FirstFix]
    assumptions: _containers.RepeatedScalarFieldContainer[str]
    notes: _containers.RepeatedScalarFieldContainer[str]
    basis: str
    per: str
    memory: PeakMemory
    def __init__(self, schema: _Optional[int] = ..., run: _Optional[str] = ..., changes: _Optional[_Iterable[str]] = ..., step_ns: _Optional[float] = ..., after: _Optional[_Union[Prediction, _Mapping]] = ..., by_regime: _Optional[_Iterable[_Union[RegimeDelta, _Mapping]]] = ..., regime: _Optional[str] = ..., headline: _Optional[str] = ..., fix_first: _Optional[_Iterable[_Union[FirstFix, _Mapping]]] = ..., assumptions: _Optional[_Iterable[str]] = ..., notes: _Optional[_Iterable[str]] = ..., basis: _Optional[str] = ..., per: _Optional[str] = ..., memory: _Optional[_Union[PeakMemory, _Mapping]] = ...) -> None: ...

class PeakMemory(_message.Message):
    __slots__ = ("peak_bytes", "low_bytes", "high_bytes", "now_bytes", "capacity_bytes", "fits", "assumes", "largest_batch")
    PEAK_BYTES_FIELD_NUMBER: _ClassVar[int]
    LOW_BYTES_FIELD_NUMBER: _ClassVar[int]
    HIGH_BYTES_FIELD_NUMBER: _ClassVar[int]
    NOW_BYTES_FIELD_NUMBER: _ClassVar[int]
    CAPACITY_BYTES_FIELD_NUMBER: _ClassVar[int]
    FITS_FIELD_NUMBER: _ClassVar[int]
    ASSUMES_FIELD_NUMBER: _ClassVar[int]
    LARGEST_BATCH_FIELD_NUMBER: _ClassVar[int]
    peak_bytes: float
    low_bytes: float
    high_bytes: float
    now_bytes: float
    capacity_bytes: float
    fits: bool
    assumes: str
    largest_batch: float
    def __init__(self, peak_bytes: _Optional[float] = ..., low_bytes: _Optional[float] = ..., high_bytes: _Optional[float] = ..., now_bytes: _Optional[float] = ..., capacity_bytes: _Optional[float] = ..., fits: bool = ..., assumes: _Optional[str] = ..., largest_batch: _Optional[float] = ...) -> None: ...

class Prediction(_message.Message):
    __slots__ = ("step_ns", "speedup", "low", "high")
    STEP_NS_FIELD_NUMBER: _ClassVar[int]
    SPEEDUP_FIELD_NUMBER: _ClassVar[int]
    LOW_FIELD_NUMBER: _ClassVar[int]
    HIGH_FIELD_NUMBER: _ClassVar[int]
    step_ns: float
    speedup: float
    low: float
    high: float
    def __init__(self, step_ns: _Optional[float] = ..., speedup: _Optional[float] = ..., low: _Optional[float] = ..., high: _Optional[float] = ...) -> None: ...

class FirstFix(_message.Message):
    __slots__ = ("cause", "title", "share")
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    SHARE_FIELD_NUMBER: _ClassVar[int]
    cause: str
    title: str
    share: float
    def __init__(self, cause: _Optional[str] = ..., title: _Optional[str] = ..., share: _Optional[float] = ...) -> None: ...

class SeriesAnswer(_message.Message):
    __slots__ = ("ids", "state", "progress", "series", "problem")
    IDS_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    SERIES_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    ids: _containers.RepeatedScalarFieldContainer[str]
    state: str
    progress: float
    series: RunSeries
    problem: str
    def __init__(self, ids: _Optional[_Iterable[str]] = ..., state: _Optional[str] = ..., progress: _Optional[float] = ..., series: _Optional[_Union[RunSeries, _Mapping]] = ..., problem: _Optional[str] = ...) -> None: ...

class WhatIfAnswer(_message.Message):
    __slots__ = ("id", "state", "progress", "what_if", "problem", "table")
    ID_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    WHAT_IF_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    TABLE_FIELD_NUMBER: _ClassVar[int]
    id: str
    state: str
    progress: float
    what_if: WhatIf
    problem: str
    table: WhatIfTable
    def __init__(self, id: _Optional[str] = ..., state: _Optional[str] = ..., progress: _Optional[float] = ..., what_if: _Optional[_Union[WhatIf, _Mapping]] = ..., problem: _Optional[str] = ..., table: _Optional[_Union[WhatIfTable, _Mapping]] = ...) -> None: ...

class WhatIfTable(_message.Message):
    __slots__ = ("schema", "run", "step_ns", "rows", "notes")
    SCHEMA_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    STEP_NS_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    NOTES_FIELD_NUMBER: _ClassVar[int]
    schema: int
    run: str
    step_ns: float
    rows: _containers.RepeatedCompositeFieldContainer[WhatIfRow]
    notes: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, schema: _Optional[int] = ..., run: _Optional[str] = ..., step_ns: _Optional[float] = ..., rows: _Optional[_Iterable[_Union[WhatIfRow, _Mapping]]] = ..., notes: _Optional[_Iterable[str]] = ...) -> None: ...

class WhatIfRow(_message.Message):
    __slots__ = ("title", "group", "value", "after", "per", "regime", "memory")
    TITLE_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    PER_FIELD_NUMBER: _ClassVar[int]
    REGIME_FIELD_NUMBER: _ClassVar[int]
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    title: str
    group: str
    value: str
    after: Prediction
    per: str
    regime: str
    memory: PeakMemory
    def __init__(self, title: _Optional[str] = ..., group: _Optional[str] = ..., value: _Optional[str] = ..., after: _Optional[_Union[Prediction, _Mapping]] = ..., per: _Optional[str] = ..., regime: _Optional[str] = ..., memory: _Optional[_Union[PeakMemory, _Mapping]] = ...) -> None: ...

class DeviceList(_message.Message):
    __slots__ = ("names",)
    NAMES_FIELD_NUMBER: _ClassVar[int]
    names: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, names: _Optional[_Iterable[str]] = ...) -> None: ...

class RunSeries(_message.Message):
    __slots__ = ("schema", "varies", "points", "regression_point", "headline", "notes", "per", "kind")
    SCHEMA_FIELD_NUMBER: _ClassVar[int]
    VARIES_FIELD_NUMBER: _ClassVar[int]
    POINTS_FIELD_NUMBER: _ClassVar[int]
    REGRESSION_POINT_FIELD_NUMBER: _ClassVar[int]
    HEADLINE_FIELD_NUMBER: _ClassVar[int]
    NOTES_FIELD_NUMBER: _ClassVar[int]
    PER_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    schema: int
    varies: str
    points: _containers.RepeatedCompositeFieldContainer[RunPoint]
    regression_point: RegressionPoint
    headline: str
    notes: _containers.RepeatedScalarFieldContainer[str]
    per: str
    kind: str
    def __init__(self, schema: _Optional[int] = ..., varies: _Optional[str] = ..., points: _Optional[_Iterable[_Union[RunPoint, _Mapping]]] = ..., regression_point: _Optional[_Union[RegressionPoint, _Mapping]] = ..., headline: _Optional[str] = ..., notes: _Optional[_Iterable[str]] = ..., per: _Optional[str] = ..., kind: _Optional[str] = ...) -> None: ...

class RunPoint(_message.Message):
    __slots__ = ("run", "value", "ns", "low_ns", "high_ns", "speedup", "regime", "by_regime", "steps", "runs")
    RUN_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    NS_FIELD_NUMBER: _ClassVar[int]
    LOW_NS_FIELD_NUMBER: _ClassVar[int]
    HIGH_NS_FIELD_NUMBER: _ClassVar[int]
    SPEEDUP_FIELD_NUMBER: _ClassVar[int]
    REGIME_FIELD_NUMBER: _ClassVar[int]
    BY_REGIME_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    RUNS_FIELD_NUMBER: _ClassVar[int]
    run: str
    value: str
    ns: float
    low_ns: float
    high_ns: float
    speedup: float
    regime: str
    by_regime: _containers.RepeatedCompositeFieldContainer[RegimeDelta]
    steps: int
    runs: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, run: _Optional[str] = ..., value: _Optional[str] = ..., ns: _Optional[float] = ..., low_ns: _Optional[float] = ..., high_ns: _Optional[float] = ..., speedup: _Optional[float] = ..., regime: _Optional[str] = ..., by_regime: _Optional[_Iterable[_Union[RegimeDelta, _Mapping]]] = ..., steps: _Optional[int] = ..., runs: _Optional[_Iterable[str]] = ...) -> None: ...

class RegressionPoint(_message.Message):
    __slots__ = ("since", "last_good", "regime", "slowdown", "because")
    SINCE_FIELD_NUMBER: _ClassVar[int]
    LAST_GOOD_FIELD_NUMBER: _ClassVar[int]
    REGIME_FIELD_NUMBER: _ClassVar[int]
    SLOWDOWN_FIELD_NUMBER: _ClassVar[int]
    BECAUSE_FIELD_NUMBER: _ClassVar[int]
    since: str
    last_good: str
    regime: str
    slowdown: float
    because: str
    def __init__(self, since: _Optional[str] = ..., last_good: _Optional[str] = ..., regime: _Optional[str] = ..., slowdown: _Optional[float] = ..., because: _Optional[str] = ...) -> None: ...
