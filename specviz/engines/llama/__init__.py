"""GGUF files on a CPU, by ik_llama.cpp."""
