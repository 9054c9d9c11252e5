"""The Triton kernel without a GPU: by its interpreter against float64, and by its machine code for sm_90."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

if importlib.util.find_spec("triton") is None:
    pytest.skip("triton is not installed: pip install --no-deps triton==3.7.1", allow_module_level=True)

from rope_viz.kernels import exact_table  # noqa: E402
from rope_viz.kernels.torch_ops import Turn  # noqa: E402

sys.path.insert(0, str(Path(__file__).parent))
import interpreted  # noqa: E402

pytestmark = pytest.mark.slow

CASES = [" | ".join(map(str, case)) for case in interpreted.cases()]


@pytest.fixture(scope="module")
def errors():
    script = Path(__file__).parent / "interpreted.py"
    environment = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    answer = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    return json.loads(answer.stdout)


@pytest.mark.parametrize("case", CASES)
def test_interpreted_kernel_agrees_with_the_reference(case, errors):
    assert errors[case] <= 1.0


def machine_code(q, k, pairs, *, interleaved, table, dtype=torch.bfloat16):
    """(SASS, constants) of what `launch` would run for q (tokens, heads, head_dim) and k on an H100."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from rope_viz.kernels import triton_ops

    xs = [torch.empty(1, *shape, dtype=dtype) for shape in (q, k) if shape]
    inv_freq = 10_000.0 ** (-np.arange(pairs) / pairs)
    cos, sin = (torch.as_tensor(part).float() for part in exact_table(inv_freq, np.arange(4)))
    angles = (None, cos, sin) if table else (torch.as_tensor(inv_freq), None, None)
    positions = torch.arange(q[0])[None]
    _, arguments, constants = triton_ops.launch(xs, xs, positions, Turn(*angles, interleaved, False, 1.0))
    warps = constants.pop("num_warps")
    names = {torch.bfloat16: "*bf16", torch.float32: "*fp32", torch.int64: "*i64"}
    signature, fixed, attributes = {}, {}, {}
    # What the launcher would specialise on: alignment to 16, and integers that are 1.
    for index, (name, value) in enumerate(zip(triton_ops.rotate_kernel.arg_names, arguments, strict=False)):
        if isinstance(value, torch.Tensor) or (isinstance(value, int) and value % 16 == 0):
            attributes[(index,)] = [["tt.divisibility", 16]]
        if value is None or (isinstance(value, int) and value == 1):
            signature[name], fixed[(index,)] = "constexpr", value
        else:
            kind = (
                names[value.dtype] if isinstance(value, torch.Tensor) else "fp32" if isinstance(value, float) else "i32"
            )
            signature[name] = kind
    for index, name in enumerate(triton_ops.rotate_kernel.arg_names):
        if name in constants:
            signature[name], fixed[(index,)] = "constexpr", constants[name]
    source = ASTSource(triton_ops.rotate_kernel, signature, fixed, attributes)
    target = GPUTarget("cuda", 90, 32)
    return triton.compile(source, target=target, options={"num_warps": warps}).asm["sass"], constants | {"warps": warps}


TARGETS = {
    "q 32 + k 8 heads of 128": ((64, 32, 128), (64, 8, 128), 64),
    "q 32 + k 8 heads of 64": ((64, 32, 64), (64, 8, 64), 32),
    "a quarter of 128 rotates": ((64, 32, 128), (64, 8, 128), 16),
    "q 40 + k 40 heads of 128": ((64, 40, 128), (64, 40, 128), 64),
    "q 16 + k 8 heads of 256": ((64, 16, 256), (64, 8, 256), 128),
}


@pytest.mark.parametrize("table", [False, True])
@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("target", TARGETS)
def test_machine_code_reads_and_writes_16_bytes_at_a_time(target, interleaved, table):
    q, k, pairs = TARGETS[target]
    code, constants = machine_code(q, k, pairs, interleaved=interleaved, table=table)
    reads = Counter(re.findall(r"\bLDG\.E(?:\.(\d+|U8|U16|S16))?", code))
    writes = Counter(re.findall(r"\bSTG\.E(?:\.(\d+|U8|U16|S16))?", code))
    warps = constants["warps"]
    tile = (constants["X_BLOCK"] + constants["Y_BLOCK"]) * q[2] * 2 * constants["TOKENS"]
    assert reads["128"] * 16 * 32 * warps >= tile  # reads of half a tile are repeated rather than narrowed
    assert writes["128"] * 16 * 32 * warps >= 0.75 * tile  # k alone may be too small to give every thread 16 bytes
    assert not any(narrow in counts for counts in (reads, writes) for narrow in ("U8", "U16", "S16"))
    assert not re.search(r"\b(LDL|STL)\b", code)  # no spills, no stack
    assert not re.search(r"\bD(MUL|ADD|FMA|SETP)\b", code)  # no double precision


def test_machine_code_needs_no_wide_division():
    code, _ = machine_code((64, 1, 64), None, 32, interleaved=True, table=False)
    assert "CALL" not in code


def test_float32_is_read_16_bytes_at_a_time():
    code, _ = machine_code((64, 32, 128), (64, 8, 128), 64, interleaved=False, table=False, dtype=torch.float32)
    assert len(re.findall(r"\bLDG\.E\.128", code)) == len(re.findall(r"\bSTG\.E\.128", code)) == 20
    assert not re.search(r"\b(LDL|STL)\b", code)
