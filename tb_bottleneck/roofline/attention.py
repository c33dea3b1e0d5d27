"""The sizes of calls of fused attention operators, and the floating-point operations and bytes of these calls."""

from collections.abc import Sequence
from typing import Any

from tb_bottleneck.base.measure import Record
from tb_bottleneck.roofline.operator_args import flags_at, numbers_at, shape_at

# Values of the mask argument of the memory-efficient kernels (CustomMaskType in torch's sdp_utils.h).
_NO_MASK, _CAUSAL_MASKS = 0, (1, 2)


class Attention(Record, frozen=True):
    """Sizes of one call of an attention operator.

    `queries` and `keys` are the sequence lengths of queries and keys. `heads` is the number of heads of the queries,
    and `key_heads` that of keys and values. Per head, a query or key has `width` elements, and a value has
    `value_width`. `causal` is True if a causal mask is used. `query` is the position of the queries among the
    operator's arguments."""

    batch: int
    heads: int
    key_heads: int
    queries: int
    keys: int
    width: int
    value_width: int
    causal: bool
    backward: bool
    query: int

    @property
    def flops(self) -> int:
        """Number of floating-point operations of the call.

        The forward pass has two matrix products with 2 b h sq sk (d + dv) operations. The backward pass has five (the
        scores again, and four gradients) with 2 b h sq sk (3 d + 2 dv). With a causal mask, half of these operations
        count, because kernels skip half of the scores. torch.utils.flop_counter counts all of them also with a causal
        mask. Softmax is not counted.
        """
        depth = 3 * self.width + 2 * self.value_width if self.backward else self.width + self.value_width
        whole = 2 * self.batch * self.heads * self.queries * self.keys * depth
        return whole // 2 if self.causal else whole

    @property
    def flops_without_repetition(self) -> int:
        """Like `flops`, but without the scores that the backward pass computes again.

        So the backward pass has twice the operations of the forward pass.
        """
        return (
            self.flops * 2 * (self.width + self.value_width) // (3 * self.width + 2 * self.value_width)
            if self.backward
            else self.flops
        )

    @property
    def elements(self) -> int:
        """Minimum number of elements that are read or written: queries, keys, values and output; in the backward pass
        also the four gradients of these tensors."""
        q = self.batch * self.heads * self.queries * self.width
        out = self.batch * self.heads * self.queries * self.value_width
        kv = self.batch * self.key_heads * self.keys * (self.width + self.value_width)
        return 2 * (q + kv + out) if self.backward else q + kv + out


class _AttentionArgs(Record, frozen=True):
    """Positions of an operator's arguments (native_functions.yaml). Tensors have the shape (batch, heads, length,
    width), or (batch, length, heads, width) if `length_first` is True."""

    query: int
    causal: int
    length_first: bool = False
    lengths: int | None = None  # two tensors of sequence offsets; with them, shapes do not determine the work
    window: int | None = None  # two sizes of a sliding window


_SDPA = "aten::_scaled_dot_product_"
_OPERATORS = {
    _SDPA + "flash_attention": _AttentionArgs(0, 4),
    _SDPA + "flash_attention_for_cpu": _AttentionArgs(0, 4),
    _SDPA + "efficient_attention": _AttentionArgs(0, 6),
    _SDPA + "cudnn_attention": _AttentionArgs(0, 6),
    _SDPA + "flash_attention_backward": _AttentionArgs(1, 11),
    _SDPA + "flash_attention_for_cpu_backward": _AttentionArgs(1, 7),
    _SDPA + "efficient_attention_backward": _AttentionArgs(1, 11),
    _SDPA + "cudnn_attention_backward": _AttentionArgs(1, 14),
    "aten::_flash_attention_forward": _AttentionArgs(0, 8, True, 3, 11),
    "aten::_flash_attention_backward": _AttentionArgs(1, 11, True, 6, 15),
    "aten::_efficient_attention_forward": _AttentionArgs(0, 9, True, 4),
    "aten::_efficient_attention_backward": _AttentionArgs(1, 14, True, 6),
}


def attention_of(operator: str, dims: Sequence[Any], concrete: Sequence[Any]) -> Attention | None:
    """Returns the sizes of a call of the attention operator `operator`.

    None for other operators, or if shapes, lengths or mask are unknown. `dims` and `concrete` are the recorded shapes
    and values of the operator's arguments.
    """
    places = _OPERATORS.get(operator)
    if places is None or _is_ragged(places, dims, concrete):
        return None
    q, k, v = (shape_at(dims, places.query + index) for index in range(3))
    if not q or not k or not v or not len(q) == len(k) == len(v) == 4 or 0 in k:
        return None
    if places.length_first:
        q, k, v = ((b, h, s, d) for b, s, h, d in (q, k, v))
    causal = _is_causal(operator, places, concrete)
    fits = q[0] == k[0] == v[0] and q[3] == k[3] and k[1:3] == v[1:3] and q[1] % k[1] == 0
    if causal is None or not fits or (causal and q[2] != k[2]):
        return None  # with different lengths, operators disagree on the corner to which the mask is aligned
    return Attention(q[0], q[1], k[1], q[2], k[2], q[3], v[3], causal, "backward" in operator, places.query)


def _is_ragged(places: _AttentionArgs, dims: Sequence[Any], concrete: Sequence[Any]) -> bool:
    if places.lengths is not None and any(shape_at(dims, places.lengths + side) for side in (0, 1)):
        return True
    sizes = [numbers_at(concrete, places.window + side) for side in (0, 1)] if places.window is not None else []
    return any(size is not None and size[0] >= 0 for size in sizes if size != ())


def _is_causal(operator: str, places: _AttentionArgs, concrete: Sequence[Any]) -> bool | None:
    if operator.startswith("aten::_efficient_attention"):
        # torch before 2.3 had one argument less before the forward operator's mask, and a flag after it.
        is_shifted = operator.endswith("forward") and flags_at(concrete, places.causal) is not None
        kind = numbers_at(concrete, places.causal - 1 if is_shifted else places.causal)
        is_known = kind is not None and len(kind) == 1 and kind[0] in (_NO_MASK, *_CAUSAL_MASKS)
        return kind[0] != _NO_MASK if is_known and kind is not None else None
    flag = flags_at(concrete, places.causal)
    return None if flag is None else flag[0]
