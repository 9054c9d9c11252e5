"""Write gguf_blocks.json: random blocks of each GGUF type, and their values by the gguf package.

pip install gguf; python tests/goldens/make_gguf_blocks.py
"""

import base64
import importlib.metadata
import json
from pathlib import Path

import gguf
import numpy as np

TYPES = ("F32", "F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K")
# First bytes of the float16 scales in a block; random scales would be infinite at times.
SCALES = {
    "Q4_0": (0,), "Q4_1": (0, 2), "Q5_0": (0,), "Q5_1": (0, 2), "Q8_0": (0,), "Q2_K": (80, 82), "Q3_K": (108,),
    "Q4_K": (0, 2), "Q5_K": (0, 2), "Q6_K": (208,),
}  # fmt: skip


def random_blocks(name: str, count: int, rng: np.random.Generator) -> np.ndarray:
    """(count, bytes) of one type, with finite values."""
    values, size = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[name]]
    if values == 1:
        numbers = rng.standard_normal((count, 32)).astype(np.float32)
        return gguf.quantize(numbers, gguf.GGMLQuantizationType[name]).view(np.uint8).reshape(count, -1)
    blocks = rng.integers(0, 256, (count, size), dtype=np.uint8)
    for first in SCALES[name]:
        blocks[:, first : first + 2] = rng.standard_normal((count, 1)).astype(np.float16).view(np.uint8)
    return blocks


def main() -> None:
    rng = np.random.default_rng(43)
    rows = {}
    for name in TYPES:
        blocks = random_blocks(name, 2, rng)
        values = gguf.dequantize(blocks, gguf.GGMLQuantizationType[name]).astype("<f4")
        rows[name] = {
            "kind": int(gguf.GGMLQuantizationType[name]),
            "blocks": base64.b64encode(blocks.tobytes()).decode(),
            "values": base64.b64encode(values.tobytes()).decode(),
        }
    made = {"made_by": "make_gguf_blocks.py", "gguf": importlib.metadata.version("gguf"), "rows": rows}
    Path(__file__).with_name("gguf_blocks.json").write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
