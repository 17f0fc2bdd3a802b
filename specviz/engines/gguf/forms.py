"""How GGUF files store numbers: types of metadata values, and forms of weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

STRING, LIST = 8, 9
#: Type of a metadata value → the number that stands in the file; 7 is yes or no.
NUMBERS: dict[int, np.dtype[Any]] = {
    0: np.dtype("<u1"),
    1: np.dtype("<i1"),
    2: np.dtype("<u2"),
    3: np.dtype("<i2"),
    4: np.dtype("<u4"),
    5: np.dtype("<i4"),
    6: np.dtype("<f4"),
    7: np.dtype("?"),
    10: np.dtype("<u8"),
    11: np.dtype("<i8"),
    12: np.dtype("<f8"),
}


@dataclass(frozen=True, slots=True)
class TensorForm:
    """A form of weights: values stand in blocks, blocks in rows.

    Attributes:
        name: as in the names of files.
        values: per block; the length of a row is a multiple of it.
        block_bytes: per block.
        row_bytes: in front of the blocks of each row.
        rows: rows that are stored interleaved; their number is a multiple of it.
    """

    name: str
    values: int
    block_bytes: int
    row_bytes: int = 0
    rows: int = 1


#: Type of a tensor → its form: those of llama.cpp, and from 97 those of ik_llama.cpp.
FORMS = {
    0: TensorForm("F32", 1, 4),
    1: TensorForm("F16", 1, 2),
    2: TensorForm("Q4_0", 32, 18),
    3: TensorForm("Q4_1", 32, 20),
    6: TensorForm("Q5_0", 32, 22),
    7: TensorForm("Q5_1", 32, 24),
    8: TensorForm("Q8_0", 32, 34),
    9: TensorForm("Q8_1", 32, 36),
    10: TensorForm("Q2_K", 256, 84),
    11: TensorForm("Q3_K", 256, 110),
    12: TensorForm("Q4_K", 256, 144),
    13: TensorForm("Q5_K", 256, 176),
    14: TensorForm("Q6_K", 256, 210),
    15: TensorForm("Q8_K", 256, 296),
    16: TensorForm("IQ2_XXS", 256, 66),
    17: TensorForm("IQ2_XS", 256, 74),
    18: TensorForm("IQ3_XXS", 256, 98),
    19: TensorForm("IQ1_S", 256, 50),
    20: TensorForm("IQ4_NL", 32, 18),
    21: TensorForm("IQ3_S", 256, 110),
    22: TensorForm("IQ2_S", 256, 82),
    23: TensorForm("IQ4_XS", 256, 136),
    24: TensorForm("I8", 1, 1),
    25: TensorForm("I16", 1, 2),
    26: TensorForm("I32", 1, 4),
    27: TensorForm("I64", 1, 8),
    28: TensorForm("F64", 1, 8),
    29: TensorForm("IQ1_M", 256, 56),
    30: TensorForm("BF16", 1, 2),
    31: TensorForm("Q4_0_4X4", 32, 18),
    32: TensorForm("Q4_0_4X8", 32, 18),
    33: TensorForm("Q4_0_8X8", 32, 18),
    34: TensorForm("TQ1_0", 256, 54),
    35: TensorForm("TQ2_0", 256, 66),
    39: TensorForm("MXFP4", 32, 17),
    40: TensorForm("NVFP4", 64, 36),
    41: TensorForm("Q1_0_G128", 128, 18),
    97: TensorForm("Q8_0_X4", 32, 34),
    98: TensorForm("Q8_1_X4", 32, 36),
    99: TensorForm("Q8_2_X4", 32, 36),
    133: TensorForm("Q6_0", 32, 26),
    134: TensorForm("IQ1_BN", 64, 13, row_bytes=2),
    135: TensorForm("IQ2_BN", 64, 16, row_bytes=4),
    136: TensorForm("Q8_K64", 64, 68),
    137: TensorForm("IQ2_K", 256, 76),
    138: TensorForm("IQ3_K", 256, 110),
    139: TensorForm("IQ4_K", 256, 144),
    140: TensorForm("IQ5_K", 256, 176),
    141: TensorForm("IQ6_K", 256, 212),
    144: TensorForm("IQ4_KS", 256, 136, row_bytes=4),
    145: TensorForm("IQ2_KS", 256, 70, row_bytes=2),
    146: TensorForm("IQ4_KSS", 256, 128, row_bytes=4),
    147: TensorForm("Q8_K16", 64, 64, row_bytes=20),
    148: TensorForm("Q8_K32", 256, 296),
    149: TensorForm("Q8_KR8", 256, 296),
    150: TensorForm("Q8_K128", 128, 140),
    151: TensorForm("Q8_KV", 32, 32, row_bytes=8),
    152: TensorForm("IQ5_KS", 256, 168, row_bytes=4),
    153: TensorForm("IQ2_KT", 256, 68, row_bytes=4),
    154: TensorForm("IQ3_KT", 256, 100, row_bytes=4),
    155: TensorForm("IQ4_KT", 256, 128, row_bytes=4),
    156: TensorForm("IQ3_KS", 256, 102, row_bytes=2),
    157: TensorForm("IQ2_KL", 256, 86, row_bytes=2),
    158: TensorForm("IQ1_KT", 256, 56, row_bytes=4),
    202: TensorForm("Q4_0_R8", 32, 18, rows=8),
    206: TensorForm("Q5_0_R4", 32, 22, rows=4),
    208: TensorForm("Q8_0_R8", 32, 34, rows=8),
    210: TensorForm("Q2_K_R4", 256, 84, rows=4),
    211: TensorForm("Q3_K_R4", 256, 110, rows=4),
    212: TensorForm("Q4_K_R4", 256, 144, rows=4),
    213: TensorForm("Q5_K_R4", 256, 176, rows=4),
    214: TensorForm("Q6_K_R4", 256, 210, rows=4),
    216: TensorForm("IQ2_XXS_R4", 256, 66, rows=4),
    217: TensorForm("IQ2_XS_R4", 256, 74, rows=4),
    218: TensorForm("IQ3_XXS_R4", 256, 98, rows=4),
    219: TensorForm("IQ1_S_R4", 32, 6, row_bytes=2, rows=4),
    220: TensorForm("IQ4_NL_R4", 32, 18, rows=4),
    221: TensorForm("IQ3_S_R4", 256, 110, rows=4),
    222: TensorForm("IQ2_S_R4", 256, 82, rows=4),
    223: TensorForm("IQ4_XS_R8", 256, 136, rows=8),
    229: TensorForm("IQ1_M_R4", 32, 7, row_bytes=2, rows=4),
    230: TensorForm("BF16_R16", 1, 2, rows=16),
    233: TensorForm("Q6_0_R4", 32, 26, rows=4),
    335: TensorForm("IQ2_BN_R4", 64, 16, row_bytes=4, rows=4),
    337: TensorForm("IQ2_K_R4", 256, 76, rows=4),
    338: TensorForm("IQ3_K_R4", 256, 110, rows=4),
    339: TensorForm("IQ4_K_R4", 256, 144, rows=4),
    340: TensorForm("IQ5_K_R4", 256, 176, rows=4),
    344: TensorForm("IQ4_KS_R4", 256, 136, row_bytes=4, rows=4),
    352: TensorForm("IQ5_KS_R4", 256, 168, row_bytes=4, rows=4),
    397: TensorForm("Q8_K_R16", 256, 258, rows=16),
    398: TensorForm("Q8_KV_R8", 32, 32, row_bytes=4, rows=8),
    399: TensorForm("Q8_K_R8", 256, 258, rows=8),
}
