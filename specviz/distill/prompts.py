"""Prompts that a person might type, written from templates and topics.

To add a domain: its name in `DOMAINS`, its phrasings in `TEMPLATES`, and the lists that these name in
`topics.FIELDS`. A phrasing with `{text}` works on a given text and is used as it stands; the others are varied by
`LIMITS` and by `_voice`.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import prod
from string import Formatter

from specviz.distill.topics import FIELDS, PASSAGES

DOMAINS = ("chat", "explanation", "story", "list", "email", "python", "javascript", "json", "summarise", "fix")


@dataclass(frozen=True, slots=True)
class Prompt:
    """One user message.

    Attributes:
        domain: one of `DOMAINS`.
        text: the message.
    """

    domain: str
    text: str


#: Phrasings by domain. A word in braces is replaced by an item of the list of that name.
TEMPLATES: Mapping[str, tuple[str, ...]] = {
    "chat": (
        "{greeting} {opener}",
        "{opener}",
        "{situation}. {ask}",
        "{greeting} {situation}. {ask}",
        "So, {situation}. {ask}",
        "I need some advice: {situation}. {ask}",
        "What can I do if {situation}?",
        "How would you help someone who says: {situation}?",
        "My problem is that {situation}. {ask}",
        "{greeting} what do you think about {talk}?",
        "Let's chat about {talk}",
        "I really like {talk}. What about you?",
        "{greeting} can we talk about {talk}?",
        "Why do so many people love {talk}?",
        "Ask me three questions about {talk}.",
        "Tell me a fun fact about {talk}",
        "Convince me to give {talk} a chance.",
        "I don't get the fuss about {talk}, explain?",
        "Help, {situation}!!",
    ),
    "explanation": (
        "Explain {noun}.",
        "Explain {clause}.",
        "Can you explain {noun} to me?",
        "Can you explain {clause}?",
        "Please tell me {clause}.",
        "Tell me about {noun}",
        "What should I know about {noun}?",
        "I have to give a short talk on {noun}. What are the main points?",
        "Do you know {clause}?",
        "I've always wondered {clause}",
        "My child asked me {clause}. What do I say?",
        "My homework is about {noun}. Help me understand it.",
        "Why is it useful to know about {noun}?",
        "Give me a simple introduction to {noun}.",
        "Explain {noun} like I'm five",
        "Explain {clause} in simple words.",
        "What's the difference between {pair}?",
        "{pair}: what is the difference?",
        "Compare {pair}.",
        "Give an example that shows {clause}.",
        "{noun}, in short",
        "What do people often get wrong about {noun}?",
        "Write a short paragraph about {noun}.",
        "Who or what was important in the history of {noun}?",
    ),
    "story": (
        "Write a story about {character} {place}.",
        "Write a short story about {character} {place} in which {problem}.",
        "Tell me a {genre} story about {character}.",
        "Tell me a {genre} story in which {problem}.",
        "Can you write a {genre} story set {place}?",
        "A {genre} story please, with {character} {place}",
        "Once upon a time there was {character} {place}. Continue the story.",
        "Continue this story: One evening, {place}, {problem}.",
        "Write the opening paragraph of a {genre} novel about {character}.",
        "Write the ending of a story in which {character} learns that {problem}.",
        "My kids want a bedtime story about {character}. Please let it happen {place}.",
        "Write a dialogue between {character} and a stranger {place}.",
        "Write a {genre} poem about {character}.",
        "Invent a legend that explains what happens when {problem}",
        "Story idea: {problem}, {place}. Write it.",
        "Give me a story with a twist. The hero is {character}, and {problem}.",
        "Write a diary entry of {character} {place}.",
        "short {genre} story, {character}, {problem}",
    ),
    "list": (
        "List {count} {theme}.",
        "Give me {count} {theme}.",
        "Give me {count} {theme} {audience}.",
        "Can you list {count} {theme} {audience}?",
        "What are {count} {theme}?",
        "I need {count} {theme} {audience}",
        "Name {count} {theme}",
        "{count} {theme} please",
        "Make a bulleted list of {theme}.",
        "Make a numbered list of {count} {theme} {audience}.",
        "Could you suggest {count} {theme}?",
        "Suggest {theme} {audience}.",
        "Please write down {count} {theme}, one per line.",
        "Brainstorm {count} {theme} for me",
        "What are some good {theme} {audience}?",
        "{theme}: give me a list",
        "Help me come up with {theme} {audience}.",
        "I can't think of any {theme}. Give me {count}?",
    ),
    "email": (
        "Write an email {aim}.",
        "Write a {tone} email {aim}.",
        "Write a {tone} email to {recipient} {aim}.",
        "Can you write an email to {recipient} {aim}?",
        "Please draft an email {aim}.",
        "Draft a {tone} message to {recipient} {aim}.",
        "Help me write an email {aim}",
        "I need a {tone} email {aim}",
        "I have to write to {recipient}, {aim}. Make it {tone}.",
        "email to {recipient} {aim}",
        "Could you help me with a {tone} mail {aim}? My name is Alex.",
        "Compose an email with a subject line, {aim}.",
        "Write the body of an email {aim}. Keep it {tone}.",
        "What would be a good email to {recipient} {aim}?",
        "Give me a template for an email {aim}.",
        "Write two short versions of an email {aim}.",
        "Sample letter {aim}",
    ),
    "python": (
        "Write a Python function that {function}.",
        "Write a python function that {function}. {code_ask}.",
        "Can you write a Python function which {function}?",
        "How do I write a function that {function} in Python?",
        "python code that {function}",
        "Give me Python code that {function}. {code_ask}.",
        "I'm new to Python. Show me a function that {function}.",
        "Using only the standard library, write Python code that {function}.",
        "Write a Python one-liner that {function}.",
        "Write a short Python function with type hints that {function}.",
        "Write a Python script that {py_script}.",
        "Write a Python script that {py_script}. {code_ask}.",
        "I need a small python program that {py_script}",
        "Could you show me Python code that {py_script}?",
        "Create a Python class for {class}.",
        "Create a Python class for {class}. {code_ask}.",
        "python class for {class} with a few useful methods",
        "What is the shortest way to write Python code that {function}?",
        "Write a Python function that {function}, then a function that tests it.",
    ),
    "javascript": (
        "Write a JavaScript function that {function}.",
        "Write a javascript function that {function}. {code_ask}.",
        "Can you write a JavaScript function which {function}?",
        "How do I write a function that {function} in JavaScript?",
        "js code that {function}",
        "Give me JavaScript that {function}. {code_ask}.",
        "I'm learning JavaScript. Show me a function that {function}.",
        "Without any library, write JavaScript that {function}.",
        "Write an arrow function that {function}. JavaScript please.",
        "Write a modern JavaScript function that {function} and log an example.",
        "Write JavaScript that {js_script}.",
        "Write JavaScript that {js_script}. {code_ask}.",
        "I need a small js snippet that {js_script}",
        "Could you show me JavaScript and HTML that {js_script}?",
        "Create a JavaScript class for {class}.",
        "Create a JavaScript class for {class}. {code_ask}.",
        "javascript class for {class} with a few useful methods",
        "Write a Node program that asks for input and {function}.",
    ),
    "json": (
        "Write a JSON object for {object}.",
        "Write a JSON object for {object}. {json_ask}.",
        "Give me JSON for {object}. {json_ask}.",
        "Create JSON describing {object}",
        "Can you generate an example JSON for {object}?",
        "I need JSON that describes {thing}. {json_ask}.",
        "json for {thing}",
        "json for {object}. {json_ask}",
        "What would {thing} look like in JSON?",
        "Make a JSON array with {count} examples of {thing}.",
        "Return a JSON array, {count} entries, each entry {object}.",
        "Output JSON only: {object}",
        "Show me a JSON schema for {thing}.",
        "Turn this into a JSON object: {object}.",
        "Sample data in JSON for {thing}. {json_ask}.",
        "Please write valid JSON for {object}.",
        "Give me test data as JSON: {object}. {json_ask}.",
    ),
    "summarise": (
        "Summarise this text:\n\n{text}",
        "Summarize the following text in one sentence.\n\n{text}",
        "Summarize in two sentences: {text}",
        "Please summarise the text below in three sentences.\n{text}",
        '"{text}"\n\nSummarise this for me.',
        "{text}\n\nWhat is the main point?",
        "{text}\n\nSummary please",
        "tl;dr\n\n{text}",
        "{text}\n\nTL;DR?",
        "Give me the key points of this passage as bullet points:\n\n{text}",
        'What is this text about? "{text}"',
        "Can you shorten this to about 30 words? {text}",
        "can you sum this up for me in a short sentence\n\n{text}",
        "Write a brief summary of the following paragraph.\n\nParagraph: {text}\n\nSummary:",
        "Make this shorter without losing the important facts: {text}",
        "I have no time to read this. Whats the gist?\n\n{text}",
        "Summarise the following for a ten year old:\n\n{text}",
        "Text: {text}\n\nWrite a headline and a one-sentence summary.",
        "summarise: {text}",
    ),
    "fix": (
        "Correct the mistakes in this text:\n\n{text}",
        "Fix the spelling and grammar: {text}",
        "Please correct the following text and return only the corrected text.\n\n{text}",
        "{text}\n\nFix the errors in the text above.",
        "{text}\n\nCan you correct this?",
        '"{text}"\n\nPlease proofread this and give me the corrected version.',
        "Proofread this: {text}",
        "fix grammar\n\n{text}",
        "Rewrite this text without spelling mistakes:\n{text}",
        "I wrote this in a hurry. Can you fix the typos?\n\n{text}",
        "Correct spelling, grammar and punctuation. Don't change anything else.\n\n{text}",
        'Are there any mistakes in this? Give me a clean version. "{text}"',
        "English isn't my first language. Please correct my text: {text}",
        "can you fix the speling in this please: {text}",
        "Edit the following paragraph for grammar and punctuation.\n\nParagraph: {text}\n\nCorrected:",
        "Give back this text with all errors corrected: {text}",
        "Clean this up for me, keep my words:\n\n{text}",
        "Check my text.\n\n{text}\n\nOnly answer with the corrected text.",
    ),
}

#: Wishes that now and then follow a prompt.
LIMITS: Mapping[str, tuple[str, ...]] = {
    "chat": ("Answer in one sentence.", "Keep it short.", "Be kind.", "No lists please."),
    "explanation": (
        "In three sentences.",
        "Keep it under 100 words.",
        "Use an analogy.",
        "For a child.",
        "Give one example.",
        "Step by step.",
        "I'm a beginner.",
        "Use bullet points.",
    ),
    "story": (
        "Under 150 words.",
        "In five sentences.",
        "With a happy ending.",
        "For children.",
        "In the first person.",
    ),
    "list": ("Just the list.", "Keep each one short.", "No explanations.", "Number them."),
    "email": ("Keep it under 100 words.", "In five sentences.", "Sign it with Sam.", "Leave the names blank."),
    "python": ("Python 3.", "Only the code please.", "Add a docstring."),
    "javascript": ("Use const and let.", "Only the code please.", "Plain JavaScript."),
    "json": ("Just the JSON.", "Keep it small.", "No explanation."),
}


def training_prompts(per_domain: int, seed: int) -> list[Prompt]:
    """Distinct prompts, `per_domain` of each domain, in the order of `DOMAINS`; the same for the same seed.

    The phrasings of a domain get equal shares as far as their topics allow.

    Raises:
        ValueError: a domain has fewer distinct prompts.
    """
    return [prompt for domain in DOMAINS for prompt in _distinct(domain, per_domain, random.Random(f"{seed} {domain}"))]


def summarise_prompt(text: str, rng: random.Random) -> Prompt:
    """A wish for a summary of the text."""
    return _prompt("summarise", rng.choice(TEMPLATES["summarise"]), {"text": text}, rng)


def fix_prompt(text: str, rng: random.Random) -> Prompt:
    """A wish to correct the text, which is damaged first."""
    return _prompt("fix", rng.choice(TEMPLATES["fix"]), {"text": text}, rng)


def passages() -> tuple[str, ...]:
    """Short texts to summarise or to fix."""
    return PASSAGES


def _distinct(domain: str, wanted: int, rng: random.Random) -> list[Prompt]:
    found: dict[Prompt, None] = {}
    for template, values in _fills(TEMPLATES[domain], wanted, rng):
        if len(found) == wanted:
            break
        found[_prompt(domain, template, values, rng)] = None
    if len(found) < wanted:
        raise ValueError(
            f"the domain {domain} has {len(found)} distinct prompts, {wanted} were asked for; "
            "ask for fewer, or add phrasings or topics"
        )
    prompts = list(found)
    rng.shuffle(prompts)
    return prompts


def _fills(templates: tuple[str, ...], wanted: int, rng: random.Random) -> Iterator[tuple[str, dict[str, str]]]:
    """Phrasings in turn, each with other values every time, at most `wanted` times each."""
    fields = {template: [name for _, name, _, _ in Formatter().parse(template) if name] for template in templates}
    sizes = {template: prod(len(_VALUES[name]) for name in names) for template, names in fields.items()}
    numbers = {template: rng.sample(range(size), min(size, wanted)) for template, size in sizes.items()}
    for turn in range(wanted):
        for template in templates:
            if turn < len(numbers[template]):
                yield template, _values(fields[template], numbers[template][turn])


def _values(names: list[str], number: int) -> dict[str, str]:
    """Combination `number` of the values that the fields can take: one digit per field."""
    values = {}
    for name in names:
        number, digit = divmod(number, len(_VALUES[name]))
        values[name] = _VALUES[name][digit]
    return values


def _prompt(domain: str, template: str, values: Mapping[str, str], rng: random.Random) -> Prompt:
    if "text" in values:
        text = damage(values["text"], rng) if domain == "fix" else values["text"]
        return Prompt(domain, template.format(text=text))
    text = re.sub(r"\ba (?=[aei])", "an ", template.format(**values))
    if rng.random() < 0.2:
        text += (" " if text[-1] in ".?!" else ". ") + rng.choice(LIMITS[domain])
    return Prompt(domain, _voice(text, rng))


def _voice(text: str, rng: random.Random) -> str:
    """The same words as another person would type them."""
    mood = rng.random()
    if mood < 0.12:
        return text[0].lower() + text[1:].rstrip(".?!")
    if mood < 0.18:
        return text.lower().replace("'", "").rstrip(".?!")
    text = text[0].upper() + text[1:]
    if mood < 0.26:
        return _one_typo(text, rng)
    if mood < 0.30 and "lease" not in text:
        return text + " Thanks!" if text[-1] in "?!" else text.rstrip(".") + rng.choice((", please.", " please"))
    return text


def _one_typo(text: str, rng: random.Random) -> str:
    words = text.split(" ")
    index = rng.randrange(len(words))
    words[index] = rng.choice((_drop_letter, _double_letter, _swap_letters))(words[index], rng)
    return " ".join(words)


def damage(text: str, rng: random.Random) -> str:
    """The text with about one fault in every eight words, as people make them in a hurry.

    White space stays, and so does a text in which nothing can go wrong, such as a number.
    """
    parts = re.split(r"(\s+)", text)
    start = 0
    while start < len(parts):
        window = range(start, min(start + 12, len(parts)), 2)
        _damage_one(parts, rng.sample(window, len(window)), rng)
        start += 2 * rng.randint(6, 10)
    return "".join(parts)


def _damage_one(parts: list[str], order: list[int], rng: random.Random) -> None:
    for fault in rng.sample(_FAULTS, len(_FAULTS)):
        for index in order:
            damaged = fault(parts[index], rng)
            if damaged != parts[index]:
                parts[index] = damaged
                return


# A fault takes a word with its punctuation and gives it back unchanged where it does not apply.


def _inner(word: str, rng: random.Random) -> int | None:
    """Where to make a slip: a letter that is neither the first nor the last of a longer word."""
    places = [i for i in range(1, len(word) - 2) if word[i - 1 : i + 3].isalpha()]
    return rng.choice(places) if places else None


def _drop_letter(word: str, rng: random.Random) -> str:
    at = _inner(word, rng)
    return word if at is None else word[:at] + word[at + 1 :]


def _double_letter(word: str, rng: random.Random) -> str:
    at = _inner(word, rng)
    return word if at is None else word[:at] + word[at] + word[at:]


def _swap_letters(word: str, rng: random.Random) -> str:
    at = _inner(word, rng)
    return word if at is None else word[:at] + word[at + 1] + word[at] + word[at + 2 :]


def _drop_apostrophe(word: str, rng: random.Random) -> str:
    return re.sub(r"(?<=\w)['’](?=\w)", "", word)


def _lower_case(word: str, rng: random.Random) -> str:
    return word[:1].lower() + word[1:]


def _drop_punctuation(word: str, rng: random.Random) -> str:
    return word[:-1] if word[-1:] in (",", ".") and word[:-1].isalpha() else word


def _confuse(word: str, rng: random.Random) -> str:
    return _exchange(word, _CONFUSED)


def _disagree(word: str, rng: random.Random) -> str:
    return _exchange(word, _DISAGREEING)


def _misspell(word: str, rng: random.Random) -> str:
    return _exchange(word, _MISSPELT)


def _exchange(word: str, pairs: Mapping[str, str]) -> str:
    bare = word.strip(',.!?;:"()')
    other = pairs.get(bare.lower())
    if other is None:
        return word
    return word.replace(bare, other.capitalize() if bare[0].isupper() else other, 1)


_Fault = Callable[[str, random.Random], str]
_FAULTS: tuple[_Fault, ...] = (
    _drop_letter,
    _double_letter,
    _swap_letters,
    _drop_apostrophe,
    _lower_case,
    _drop_punctuation,
    _confuse,
    _disagree,
    _misspell,
)


def _pairs(block: str) -> dict[str, str]:
    left_right = (item.split("/") for item in block.split())
    return {left: right for left, right in left_right}


_CONFUSED = _pairs("""
their/there there/their they're/their its/it's it's/its your/you're you're/your then/than than/then to/too too/to
two/too were/where where/were of/off off/of lose/loose whether/weather weather/whether affect/effect effect/affect
who's/whose whose/who's quite/quiet quiet/quite hear/here here/hear know/now new/knew break/brake past/passed
passed/past which/witch by/buy piece/peace wear/where through/threw right/write an/a
""")
_DISAGREEING = _pairs("""
is/are are/is was/were were/was has/have have/has does/do do/does doesn't/don't don't/doesn't isn't/aren't goes/go
makes/make takes/take gets/get needs/need wants/want says/say comes/come finds/find keeps/keep likes/like works/work
gives/give helps/help means/mean looks/look lives/live starts/start begins/begin becomes/become uses/use shows/show
tells/tell puts/put grows/grow eats/eat runs/run sells/sell opens/open costs/cost knows/know thinks/think took/taken
went/gone came/come saw/seen
""")
_MISSPELT = _pairs("""
because/becuase receive/recieve received/recieved believe/beleive friend/freind friends/freinds until/untill
really/realy beautiful/beautifull usually/usualy different/diffrent several/severel people/poeple government/goverment
beginning/begining necessary/neccessary important/importent business/buisness every/evry always/allways might/migth
would/woud should/shoud could/coud before/befor another/anouther often/offen enough/enouth together/togehter
children/childern something/somthing everyone/everone weeks/weaks money/mony minutes/minuts finally/finaly
probably/probly definitely/definately separate/seperate tomorrow/tommorow interesting/intresting example/exemple
also/allso still/stil water/watter little/litle night/nigth
""")


def _runs(passage: str) -> Iterator[str]:
    """The passage and every run of two or more of its sentences."""
    sentences = re.split(r"(?<=[.!?])\s+", passage)
    for start in range(len(sentences) - 1):
        for end in range(start + 2, len(sentences) + 1):
            yield " ".join(sentences[start:end])


_VALUES: Mapping[str, tuple[str, ...]] = {**FIELDS, "text": tuple(run for text in PASSAGES for run in _runs(text))}
