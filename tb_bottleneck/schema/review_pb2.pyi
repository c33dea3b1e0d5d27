from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Review(_message.Message):
    __slots__ = ("states",)
    STATES_FIELD_NUMBER: _ClassVar[int]
    states: _containers.RepeatedCompositeFieldContainer[ReviewState]
    def __init__(self, states: _Optional[_Iterable[_Union[ReviewState, _Mapping]]] = ...) -> None: ...

class ReviewState(_message.Message):
    __slots__ = ("cause", "state", "reason", "fixed_in", "by", "comments", "earlier_comments", "trial")
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    FIXED_IN_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    COMMENTS_FIELD_NUMBER: _ClassVar[int]
    EARLIER_COMMENTS_FIELD_NUMBER: _ClassVar[int]
    TRIAL_FIELD_NUMBER: _ClassVar[int]
    cause: str
    state: str
    reason: str
    fixed_in: str
    by: str
    comments: _containers.RepeatedCompositeFieldContainer[ReviewComment]
    earlier_comments: int
    trial: str
    def __init__(self, cause: _Optional[str] = ..., state: _Optional[str] = ..., reason: _Optional[str] = ..., fixed_in: _Optional[str] = ..., by: _Optional[str] = ..., comments: _Optional[_Iterable[_Union[ReviewComment, _Mapping]]] = ..., earlier_comments: _Optional[int] = ..., trial: _Optional[str] = ...) -> None: ...

class ReviewComment(_message.Message):
    __slots__ = ("by", "unix_ns", "text")
    BY_FIELD_NUMBER: _ClassVar[int]
    UNIX_NS_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    by: str
    unix_ns: float
    text: str
    def __init__(self, by: _Optional[str] = ..., unix_ns: _Optional[float] = ..., text: _Optional[str] = ...) -> None: ...

class Ledger(_message.Message):
    __slots__ = ("rows", "causes")
    ROWS_FIELD_NUMBER: _ClassVar[int]
    CAUSES_FIELD_NUMBER: _ClassVar[int]
    rows: _containers.RepeatedCompositeFieldContainer[LedgerRow]
    causes: _containers.RepeatedCompositeFieldContainer[LedgerCause]
    def __init__(self, rows: _Optional[_Iterable[_Union[LedgerRow, _Mapping]]] = ..., causes: _Optional[_Iterable[_Union[LedgerCause, _Mapping]]] = ...) -> None: ...

class LedgerRow(_message.Message):
    __slots__ = ("run", "causes", "fixed_in", "by", "expected", "measured", "result", "because", "change")
    RUN_FIELD_NUMBER: _ClassVar[int]
    CAUSES_FIELD_NUMBER: _ClassVar[int]
    FIXED_IN_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_FIELD_NUMBER: _ClassVar[int]
    MEASURED_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    BECAUSE_FIELD_NUMBER: _ClassVar[int]
    CHANGE_FIELD_NUMBER: _ClassVar[int]
    run: str
    causes: _containers.RepeatedScalarFieldContainer[str]
    fixed_in: str
    by: str
    expected: Gain
    measured: Gain
    result: str
    because: str
    change: str
    def __init__(self, run: _Optional[str] = ..., causes: _Optional[_Iterable[str]] = ..., fixed_in: _Optional[str] = ..., by: _Optional[str] = ..., expected: _Optional[_Union[Gain, _Mapping]] = ..., measured: _Optional[_Union[Gain, _Mapping]] = ..., result: _Optional[str] = ..., because: _Optional[str] = ..., change: _Optional[str] = ...) -> None: ...

class LedgerCause(_message.Message):
    __slots__ = ("cause", "measured", "inside", "median_error")
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    MEASURED_FIELD_NUMBER: _ClassVar[int]
    INSIDE_FIELD_NUMBER: _ClassVar[int]
    MEDIAN_ERROR_FIELD_NUMBER: _ClassVar[int]
    cause: str
    measured: int
    inside: int
    median_error: float
    def __init__(self, cause: _Optional[str] = ..., measured: _Optional[int] = ..., inside: _Optional[int] = ..., median_error: _Optional[float] = ...) -> None: ...

class Gain(_message.Message):
    __slots__ = ("speedup", "low", "high")
    SPEEDUP_FIELD_NUMBER: _ClassVar[int]
    LOW_FIELD_NUMBER: _ClassVar[int]
    HIGH_FIELD_NUMBER: _ClassVar[int]
    speedup: float
    low: float
    high: float
    def __init__(self, speedup: _Optional[float] = ..., low: _Optional[float] = ..., high: _Optional[float] = ...) -> None: ...
