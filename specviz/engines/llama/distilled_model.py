"""A distilled draft that ik_llama.cpp runs."""

from __future__ import annotations

from pathlib import Path

from specviz.core.errors import UnsupportedModelError
from specviz.engines.distilled import check_folder
from specviz.engines.distilled_model import DistilledModel
from specviz.engines.llama.handle import Handle
from specviz.engines.llama.model import in_words, prepare
from specviz.engines.llama.plan import plan
from specviz.engines.llama.scorer import LlamaScorer
from specviz.engines.llama.threads import threads


def load(name: str, folder: Path, path: Path) -> DistilledModel:
    """Load a distilled draft.

    Args:
        folder: of the draft: what it is, and the map of its tokens.
        path: its weights as `specviz.engines.llama.draft_file.write_draft` wrote them.

    Raises:
        UnsupportedModelError: a file is missing, damaged, of another format, or does not fit the others.
    """
    description, vocabulary = check_folder(folder)
    size = plan(name, path, tokenizer=False).context
    handle = Handle(path)
    width, inputs = len(vocabulary.tokens), vocabulary.inputs
    if handle.vocab_size != width:
        raise UnsupportedModelError(
            f"{path.name} has {handle.vocab_size:,} tokens, and the draft in {folder} has {width:,}.",
            "Delete the file: it is made again.",
        )
    chunk = prepare(name, handle, width)
    return DistilledModel(
        name=name,
        vocabulary=vocabulary,
        description=description,
        max_context=size,
        precision=in_words(handle.precision, chunk),
        engine="llama",
        scorer=lambda: LlamaScorer(
            name,
            handle,
            vocab_size=len(inputs),
            width=width,
            max_context=size,
            threads=threads,
            chunk=chunk,
            inputs=inputs,
        ),
    )
