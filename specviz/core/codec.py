"""Values and their JSON form: types and ranges are declared on the fields, and checked when a value is read.

Numbers of a recording or a message come from strangers. A position becomes the length of a list and a probability the
length of a bar, so the types below say what is possible, and msgspec refuses the rest.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeVar, get_args, get_origin

import msgspec
import numpy as np
from msgspec import Meta

from specviz.core.packed import Packed

T = TypeVar("T")

#: How many of something; also a duration in whole units.
Count = Annotated[int, Meta(ge=0, le=2**62)]
#: A place in an output, or the number of a round.
Index = Annotated[int, Meta(ge=0, le=2**31)]
#: A place in a block of draft tokens.
Position = Annotated[int, Meta(ge=0, le=255)]
TokenId = Annotated[int, Meta(ge=0, le=2**31)]
#: A probability; a sum of rounded ones may be a little above 1.
Share = Annotated[float, Meta(ge=0.0, le=1 + 1e-6)]
#: A duration or a rate. Not below 0 but for rounding, where one clock was subtracted from another.
Amount = Annotated[float, Meta(ge=-1e6, le=1e15)]


def to_json(value: Any) -> Any:
    """A value as JSON-ready data; bytes stay bytes, and infinite numbers stay numbers."""
    return msgspec.to_builtins(value, builtin_types=(bytes,), enc_hook=_plain)


def from_json(data: Any, kind: type[T]) -> T:
    """The value that `to_json` made this from.

    Args:
        data: JSON-ready data. Unknown fields, from a newer version, are left out.

    Raises:
        msgspec.ValidationError: a field is missing, of another type or out of range; names the field.
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
    """Arrays: probabilities where they are floats, token ids where they are whole numbers."""
    if get_origin(kind) is np.ndarray:
        number = get_args(get_args(kind)[1])[0]
        item: Any = Share if number is np.float64 else TokenId
        return np.array(msgspec.convert(data, list[item]), dtype=number)
    raise NotImplementedError(f"{kind} has no JSON form")
