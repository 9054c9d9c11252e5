"""Makes rounding_ml_dtypes.json: what ml_dtypes rounds a fixed list of float32 values to.

Run with ml_dtypes 0.6.0 and numpy 2.4.6: python tests/goldens/make_rounding_golden.py
The values lie within every format's range: beyond it ml_dtypes makes e4m3 NaN, where torch 2.13 keeps its largest.
"""

import json
from pathlib import Path

import ml_dtypes
import numpy as np

TYPES = {
    "bf16": ml_dtypes.bfloat16,
    "fp16": np.float16,
    "fp8-e4m3": ml_dtypes.float8_e4m3fn,
    "fp8-e5m2": ml_dtypes.float8_e5m2,
}


def main() -> None:
    random = np.random.default_rng(7)
    spread = random.standard_normal(150) * 2.0 ** random.integers(-20, 8, 150)
    ties = [1 + 2.0**-8, 1 + 3 * 2.0**-8, 1 + 2.0**-4, 1 + 3 * 2.0**-4, 1.125, 1.375, 2.0**-10, 3 * 2.0**-10, 257, 259]
    values = np.array([0.0, -0.0, 1.0, -1.0, *ties, *np.clip(spread, -448, 448)], dtype=np.float32)
    golden = {
        "made_with": {"ml_dtypes": ml_dtypes.__version__, "numpy": np.__version__},
        "values": [float(value) for value in values],
        "rounded": {name: [float(x) for x in values.astype(kind)] for name, kind in TYPES.items()},
    }
    Path(__file__).with_name("rounding_ml_dtypes.json").write_text(json.dumps(golden) + "\n")


if __name__ == "__main__":
    main()
