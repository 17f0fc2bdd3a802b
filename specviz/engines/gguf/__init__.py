"""GGUF files: whether one is sound, its metadata, its tokenizer."""
