"""Values and their JSON form: types and ranges are declared on the fields, and checked when a value is read.

Recordings and messages are untrusted input: a position becomes the length of a list, a probability the length of a bar.
The types below declare the allowed ranges, and msgspec refuses values outside them.
"""

from __future__ import annotations

import sys
from typing import Annotated, Any, TypeVar, get_args, get_origin

import msgspec
import numpy as np
from msgspec import Meta

from specviz.core.packed import Packed

T = TypeVar("T")

#: A count; also a duration in whole units.
Count = Annotated[int, Meta(ge=0, le=2**62)]
#: An index in the output, or the number of a round.
Index = Annotated[int, Meta(ge=0, le=2**31)]
#: An index in a block of draft tokens, or the number of a candidate.
Position = Annotated[int, Meta(ge=0, le=255)]
TokenId = Annotated[int, Meta(ge=0, le=2**31)]
#: A probability; a sum of rounded probabilities may be slightly above 1.
Share = Annotated[float, Meta(ge=0.0, le=1 + 1e-6)]
#: A natural logarithm of a probability; that of an impossible token is -inf. No NaN.
LogProb = Annotated[float, Meta(le=sys.float_info.max)]
#: A duration or a rate. Slightly negative values can come from subtracting the times of two clocks.
Amount = Annotated[float, Meta(ge=-1e6, le=1e15)]


def to_json(value: Any) -> Any:
    """A value as JSON-ready data; bytes stay bytes, and infinite numbers stay numbers."""
    return msgspec.to_builtins(value, builtin_types=(bytes,), enc_hook=_plain)


def from_json(data: Any, kind: type[T]) -> T:
    """The inverse of `to_json`.

    Args:
        data: JSON-ready data. Unknown fields, from a newer version, are ignored.

    Raises:
        msgspec.ValidationError: a field is missing, of the wrong type or out of range; the message names the field.
    """
    return msgspec.convert(data, kind, builtin_types=(bytes,), dec_hook=_rich)


def _plain(value: Any) -> Any:
    if isinstance(value, Packed):
        return list(value)
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    raise NotImplementedError(f"{type(value).__name__} has no JSON form")


def _rich(kind: Any, data: Any) -> Any:
    """Decode arrays: float arrays hold probabilities, integer arrays hold token ids."""
    if get_origin(kind) is np.ndarray:
        number = get_args(get_args(kind)[1])[0]
        item: Any = Share if number is np.float64 else TokenId
        return np.array(msgspec.convert(data, list[item]), dtype=number)
    raise NotImplementedError(f"{kind} has no JSON form")
