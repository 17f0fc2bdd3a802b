"""A GGUF model in several files, as `llama-gguf-split` leaves it."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np


def split_gguf(whole: Path, stem: Path, tensors_per_file: int) -> list[Path]:
    """Write the model of a file as `STEM-00001-of-0000N.gguf` and so on; returns these paths."""
    reader = gguf.GGUFReader(whole)
    entries = {key: field for key, field in reader.fields.items() if not key.startswith("GGUF.")}
    architecture = entries.pop("general.architecture").contents()
    writer = gguf.GGUFWriter(stem.with_name(f"{stem.name}.gguf"), architecture, split_max_tensors=tensors_per_file)
    for key, field in entries.items():
        inner = field.types[1] if len(field.types) > 1 else None
        writer.add_key_value(key, field.contents(), field.types[0], inner)
    for tensor in reader.tensors:
        writer.add_tensor(tensor.name, np.array(tensor.data), raw_dtype=tensor.tensor_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return sorted(stem.parent.glob(f"{stem.name}-*-of-*.gguf"))
