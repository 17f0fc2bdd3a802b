"""Every text that can be reached from a value, and so could be in a dump of it."""

from __future__ import annotations

import types
import weakref
from typing import Any

_LEAVES = (types.ModuleType, type, weakref.ref, int, float, complex, bool, types.NoneType)


def texts(value: Any) -> str:
    """All strings and bytes below a value, through containers, attributes, bound methods and closures."""
    found: list[str] = []
    # By identity; the objects are kept, so that no other one gets the same id.
    seen: dict[int, Any] = {}
    todo = [value]
    while todo:
        one = todo.pop()
        if isinstance(one, _LEAVES) or id(one) in seen:
            continue
        seen[id(one)] = one
        if isinstance(one, str):
            found.append(one)
        elif isinstance(one, bytes | bytearray):
            found.append(bytes(one).decode("latin-1"))
        else:
            todo += _below(one)
    return "\n".join(found)


def _below(one: Any) -> list[Any]:
    if isinstance(one, dict):
        return [*one.keys(), *one.values()]
    if isinstance(one, list | tuple | set | frozenset):
        return list(one)
    if isinstance(one, types.FunctionType):
        return [cell.cell_contents for cell in one.__closure__ or () if _is_full(cell)]
    if isinstance(one, types.MethodType):
        return [one.__self__, one.__func__]
    slots = [name for kind in type(one).__mro__ for name in getattr(kind, "__slots__", ()) if isinstance(name, str)]
    held = [getattr(one, name) for name in slots if name != "__weakref__" and hasattr(one, name)]
    if hasattr(one, "ListFields"):  # a protobuf message
        return [*held, *(value for _, value in one.ListFields())]
    if hasattr(one, "__iter__") and "google" in type(one).__module__:
        return [*held, *one]
    return [*held, *vars(one).values()] if hasattr(one, "__dict__") else held


def _is_full(cell: Any) -> bool:
    """Whether a closure's variable has been set."""
    try:
        _ = cell.cell_contents
    except ValueError:
        return False
    return True
