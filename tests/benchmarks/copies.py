"""Prompts whose answers copy: texts to repeat, to correct, or to put into another form. Written for these benchmarks.

A model of this size copies code and tables only where the answer is begun: those prompts have no chat template.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from specviz.core.ports import Tokenizer


@dataclass(frozen=True, slots=True)
class Copy:
    """A prompt. `raw`: without the chat template."""

    name: str
    text: str
    raw: bool = False

    def ids(self, tokenizer: Tokenizer) -> Sequence[int]:
        return tokenizer.encode(self.text) if self.raw else tokenizer.chat_ids(self.text)[1]


_STORY = (
    "The old lighthouse stood on a narrow cliff above the bay. Every evening the keeper climbed the ninety steps, "
    "cleaned the glass and lit the lamp. Ships from the north waited for the light before they turned into the "
    "harbour. One night in November a storm broke the great window, and the wind blew the lamp out. The keeper held a "
    "lantern over the rail until the morning, and not one ship was lost."
)
_FAULTS = (
    "The trian to the city was late agian. We wated on the cold platform for almost an hour. When it finaly arrived, "
    "every seat was allready taken, so we stood near the door until the last staton. The peple around us were tired "
    "and hungry. A yung man shared his bred with evrybody, and an old woman told us storys about the mountens where "
    "she was born."
)
_LETTER = (
    "Dear Ms Weber,\nthe delivery of your new garden table will take place on Thursday between nine and eleven in the "
    "morning. Our driver will call you half an hour before he arrives. Please keep the driveway free.\nKind regards,\n"
    "Holm Furniture"
)
_RECIPE = (
    "1. Wash the potatoes and cut them into thin slices.\n2. Heat the oil in a large pan.\n3. Fry the slices for ten "
    "minutes and turn them once.\n4. Add salt, pepper and a little rosemary.\n5. Serve them with cold yoghurt."
)
_JSON = '{"host": "db.example.org", "port": 5432, "user": "reader", "database": "sales", "timeout": 30, "retries": 5}'
_LOG = (
    "2026-03-01 10:02:11 INFO server started on port 8080\n2026-03-01 10:02:15 INFO connected to database sales\n"
    "2026-03-01 10:03:40 WARNING slow query took 2.4 seconds\n2026-03-01 10:05:02 ERROR connection to database lost"
)
_CODE = """\
def average(values):
    total = 0
    count = 0
    for value in values:
        total = total + value
        count = count + 1
    if count == 0:
        return 0
    return total / count
"""
_TABLE = """\
name | city | age
Anna | Oslo | 31
Bruno | Lisbon | 45
Carla | Vienna | 28
David | Dublin | 52
Emil | Prague | 37
Freya | Bergen | 41
"""

COPIES: tuple[Copy, ...] = (
    Copy("repeat a story", f"Repeat this text exactly, word for word:\n\n{_STORY}"),
    Copy("repeat a letter", f"Repeat this letter exactly:\n\n{_LETTER}"),
    Copy("repeat a recipe", f"Write every line of this list again, in the same order:\n\n{_RECIPE}"),
    Copy("repeat JSON", f"Repeat this JSON exactly:\n\n{_JSON}"),
    Copy("fix the spelling", f"Correct the spelling mistakes:\n\n{_FAULTS}"),
    Copy("sentences as a list", f"Write this text as a list with one sentence per line:\n\n{_STORY}"),
    Copy("JSON on several lines", f"Make this JSON pretty, with one key per line:\n\n{_JSON}"),
    Copy("a log as Markdown", f"Format this log as a Markdown code block:\n\n{_LOG}"),
    Copy(
        "rename a variable",
        f"# Before: the variable is called total.\n\n{_CODE}\n\n# After: total is renamed to result.\n\n"
        "def average(values):\n    result = 0\n    count = 0\n    for value in values:\n        result =",
        raw=True,
    ),
    Copy(
        "JSON from a table",
        f"Table:\n\n{_TABLE}\nThe same as JSON, one object for each row:\n\n[\n"
        '{"name": "Anna", "city": "Oslo", "age": 31},\n{"name": "Bruno", "city": "Lisbon", "age": 45},\n',
        raw=True,
    ),
)
