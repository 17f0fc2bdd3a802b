"""Where weights come from, and a language model that scores them with a cache that can be rewound.

`store` names models and brings them to this machine, `language_model` loads and scores them, `tokenizer` turns text
into ids, `pairing` says whether two models may work together, `blas` makes MLX fast on a CPU.
"""
