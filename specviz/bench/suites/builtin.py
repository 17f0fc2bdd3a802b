"""The texts of the suite that comes with specviz: eight of each domain, in voices that differ as people do.

They are for measuring alone: no draft is trained on them, and the prompts that drafts are trained on share none.
"""

from __future__ import annotations

from collections.abc import Mapping

from specviz.bench.suites.builtin_passages import FIX, SUMMARISE

_CHAT = (
    "hey, so my flatmate just told me we're getting a tortoise?? I have questions. mainly: how long do these things "
    "live",
    "I've been alone in the office all day because everyone else is at a conference. Keep me company for a bit?",
    "My mother-in-law gave us a huge ugly vase and she'll be here on Sunday. Do I have to put it out?",
    "Honestly, is it weird to go out for dinner all by yourself? I'm thinking of doing it tonight.",
    "We had a power cut last night and ended up playing cards by torchlight with the neighbours. It was the nicest "
    "evening in months. Why don't we do that more often?",
    "ok settle this for us: does a hot dog count as a sandwich",
    "I finally threw away the jeans I was going to fit into again some day. Say something encouraging, but please "
    "nothing about beauty coming from within.",
    "If you had to live inside one song for a week, which one would you pick, and what would your days there be like?",
)

_EXPLANATION = (
    "Why do my ears pop when I drive up into the hills?",
    "What does a conductor really do? The orchestra could read the notes without one, or couldn't it?",
    "Please explain how a sewing machine makes a stitch with two threads. I have looked at mine for an hour and still "
    "don't get it.",
    "how come a wet towel looks darker than a dry one",
    "Explain what escrow is to somebody who is about to buy their first flat.",
    "I read that some clocks lose time on a hill and gain it in a valley, or the other way round. Is there any truth "
    "in that? Explain it step by step, without formulas.",
    "What makes a whip crack?",
    "My niece is nine and wants to know where the hole in a doughnut comes from and whether anybody eats the middle. "
    "Give her a proper answer in about five sentences.",
)

_STORY = (
    "Write a short story about a bus stop where only one bus has ever stopped.",
    "Tell me about the worst waiter in Naples. Make it funny, and let him win in the end.",
    "A woman buys a second-hand coat and finds a list of groceries in its lining. She buys everything on the list. "
    "Write what happens then, in the past tense and from her point of view.",
    "story for a six year old pls: a snail enters a race, dont make it win",
    "Write the scene in which an elderly burglar realises that the house he has broken into is the one he grew up in.",
    "Begin a story with the sentence 'The elephant had been in the lift since Tuesday.' Three paragraphs are enough.",
    "Two weather balloons fall in love over the Atlantic. Write their letters to each other, at least four of them.",
    "Retell the tale of the tortoise and the hare as a radio commentary, with two reporters who don't like each other.",
)

_PYTHON = (
    "Write a Python function `overlap(a, b)` that returns how many days two date ranges have in common. Each range is "
    "a tuple of two `datetime.date` values, both included.",
    "I need a function in python that splits the bill after a meal. input is a dict of name -> list of prices plus a "
    "service charge in percent, output is what each one pays, rounded to cents so that it still adds up",
    "Write a Python class `Ring` with a fixed capacity: appending to a full one drops the oldest value. It should "
    "support len(), indexing and iteration. Add docstrings.",
    'Complete this function:\n\ndef roman(number: int) -> str:\n    """Return a number from 1 to 3999 as a Roman '
    'numeral, for example 1994 as \'MCMXCIV\'."""',
    "This is supposed to remove the even numbers from a list but it leaves some of them in. Why, and what would be "
    "the right way?\n\nnumbers = [2, 4, 6, 7, 8, 10]\nfor n in numbers:\n    if n % 2 == 0:\n        "
    "numbers.remove(n)\nprint(numbers)",
    "Using only the standard library, write a command line program that takes a folder and prints how much space each "
    "file ending uses, the largest first, with sizes in KB or MB.",
    "Can you show me how to turn a nested dictionary such as {'a': {'b': 1, 'c': {'d': 2}}} into a flat one with keys "
    "like 'a.c.d'? And back again, please.",
    "Write three pytest tests for a function `slugify(title)` that makes lower-case names with hyphens for web "
    "addresses. Think of accents, runs of blanks and an empty title.",
)

_JSON = (
    "Write a JSON object for a lighthouse that is open to visitors. Keys: name, built (year), height_m, steps, "
    "opening_hours (an object with a key per day) and tickets (an array of objects with type and price). Reply with "
    "the JSON alone.",
    "turn this into json: the blue kayak seats two and costs 18 an hour, the red one seats one and costs 12, life "
    "jackets are free. fields: items, each with colour, seats, price_per_hour, plus extras",
    "Give me a JSON object that describes a card game of your choice: its name, the course of a turn as an array "
    "of strings, and an object with one piece of advice for beginners and one for experts.",
    "I am filling a test database. Please make a JSON object with a key 'patients' that holds five invented patients, "
    "each with id, first_name, birth_date as YYYY-MM-DD, conditions (maybe empty) and emergency_contact.",
    "Describe the following order as one JSON object with sensible keys: Ms Okafor from Leeds would like three bags "
    "of flour and a dozen eggs, delivered on Friday between four and six, to be paid in cash. The doorbell is broken, "
    "so knock.",
    "A JSON object for the state of a dishwasher, as a smart home would get it. Nested: programme, water, door, "
    "faults. Numbers as numbers, true and false where they fit, null for what is not known.",
    "Return a single JSON object with a key per weekday, each of them holding the lunch of a factory canteen. "
    "Each lunch has main, side, dessert and vegetarian (boolean). No comments and no text around it.",
    "Please write the JSON for a three-day ride by mountain bike from hut to hut. For every stage I need start, "
    "finish, distance_km, climb_m, two sights and the place to stay, and at the top the name of the tour and its total "
    "distance.",
)

_MATHS = (
    (
        "A baker fills 14 trays with 12 rolls each. She sells 97 rolls in the morning and gives 5 away. How many are "
        "left for the afternoon?",
        "66",
    ),
    (
        "Jonas walks to work at 5 km/h and comes back along the same road by bus at 30 km/h. Both ways together take "
        "him 42 minutes. How many kilometres is it to work? Show your working.",
        "3",
    ),
    (
        "tickets for the school play are 4 for kids and 7 for adults. they sold 120 tickets and took 660. how many "
        "adults came?",
        "60",
    ),
    (
        "A tank holds 240 litres when full. It is three eighths full when the tap is opened, and the tap lets in 6 "
        "litres a minute, while a leak lets 1 litre a minute out. After how many minutes does the tank run over?",
        "30",
    ),
    (
        "Rosa is three times as old as her son Milo. In twelve years she will be twice as old as he is then. How old "
        "is Rosa now?",
        "36",
    ),
    (
        "A shop raises the price of a lamp by 20 %, and in the January sale it takes 25 % off the new price. The lamp "
        "then costs 54 euros. What did it cost at the very beginning, in euros?",
        "60",
    ),
    (
        "Five friends share the petrol for a trip of 480 km. The car needs 7.5 litres for 100 km and a litre costs "
        "1.75. Think step by step, and tell me how much each of them has to pay.",
        "12.60",
    ),
    (
        "On a farm there are hens and sheep, 29 heads and 84 legs between them. If a fox frightened half of the sheep "
        "... no, wait, forget about the fox. How many sheep are there?",
        "13",
    ),
)


def _unanswered(texts: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    return tuple((text, "") for text in texts)


#: Prompts by domain, each with its answer; only the maths have one.
TEXTS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "chat": _unanswered(_CHAT),
    "explanation": _unanswered(_EXPLANATION),
    "story": _unanswered(_STORY),
    "python": _unanswered(_PYTHON),
    "json": _unanswered(_JSON),
    "maths": _MATHS,
    "summarise": _unanswered(SUMMARISE),
    "fix": _unanswered(FIX),
}
