"""The Triton kernel without a GPU: by its interpreter against float64, and by its machine code for sm_90."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

if importlib.util.find_spec("triton") is None:
    pytest.skip("triton is not installed: pip install --no-deps triton==3.7.1", allow_module_level=True)

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


@pytest.mark.gpu
@pytest.mark.parametrize("case", list(interpreted.cases()), ids=CASES)
def test_kernel_on_a_gpu_agrees_with_the_reference(case):
    assert interpreted.worst_error(*case, "cuda") <= 1.0


# q, k and the dimensions that rotate, in every case of benchmarks/gpu_cases.py.
SIZES = {
    "32 + 8 heads of 128": ((4, 8192, 32, 128), (4, 8192, 8, 128), 128),
    "131,072 tokens": ((1, 131_072, 32, 128), (1, 131_072, 8, 128), 128),
    "16 + 4 heads of 64": ((8, 8192, 16, 64), (8, 8192, 4, 64), 64),
    "32 of 80 rotate": ((4, 8192, 32, 80), (4, 8192, 32, 80), 32),
    "16 + 8 heads of 256": ((4, 8192, 16, 256), (4, 8192, 8, 256), 256),
    "one head of 64": ((16, 65_536, 1, 64), None, 64),
    "40 + 40 heads of 128": ((4, 4096, 40, 128), (4, 4096, 40, 128), 128),
    "decode": ((64, 1, 32, 128), (64, 1, 8, 128), 128),
    "prefill": ((1, 4096, 32, 128), (1, 4096, 8, 128), 128),
}
# Tokens, heads of q and of k per program, warps with exact angles and with a table. benchmarks/NOTES.md says which of
# them a sweep on an H200 found.
PROGRAMS = {
    "32 + 8 heads of 128": (1, 32, 8, 2, 4),
    "131,072 tokens": (1, 32, 8, 2, 4),
    "16 + 4 heads of 64": (1, 16, 4, 1, 1),
    "32 of 80 rotate": (1, 32, 32, 8, 8),
    "16 + 8 heads of 256": (1, 16, 8, 2, 4),
    "one head of 64": (64, 1, 0, 4, 4),
    "40 + 40 heads of 128": (2, 8, 8, 4, 4),
    "decode": (1, 32, 8, 2, 4),
    "prefill": (1, 32, 8, 2, 4),
}


def plan_of(sizes, *, interleaved=False, table=False, dtype=torch.bfloat16, in_place=False, checked=False):
    """The plan of a launch for contiguous q and k, and one row of positions for all batches."""
    from rope_viz.kernels import triton_ops

    q, k, rotary_dim = sizes
    q_strides, k_strides = (torch.empty(shape, device="meta").stride() for shape in (q, k or q))
    kind = triton_ops.Kind(rotary_dim // 2, interleaved, False, table, checked, False)
    strides = (q_strides, q_strides, k, k_strides, k_strides)
    return triton_ops.make_plan(q, *strides, (0, 1), dtype, in_place, kind)


@pytest.mark.parametrize("case", SIZES)
def test_programs_have_the_shapes_of_the_sweep(case):
    plans = [plan_of(SIZES[case], table=table) for table in (False, True)]
    exact = plans[0].constants
    shape = exact["TOKENS"], exact["X_BLOCK"], exact["Y_BLOCK"], *(plan.constants["num_warps"] for plan in plans)
    assert shape == PROGRAMS[case]
    batch, tokens, heads, _ = SIZES[case][0]
    blocks, groups, batches = plans[0].grid
    assert blocks * batches * shape[0] == batch * tokens
    assert groups * shape[1] == heads


def test_plan_of_a_shape_is_computed_once():
    from rope_viz.kernels import triton_ops

    triton_ops.make_plan.cache_clear()
    first = plan_of(SIZES["decode"])
    assert plan_of(SIZES["decode"]) is first
    assert plan_of(SIZES["decode"], interleaved=True) is not first
    assert triton_ops.make_plan.cache_info().misses == 2


def machine_code(plan, *, table=False, checked=False, dtype=torch.bfloat16):
    """SASS for an H100 of a plan's kernel."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from rope_viz.kernels import triton_ops

    tensor = {torch.bfloat16: "*bf16", torch.float32: "*fp32"}[dtype]
    angles = [None, "*fp32", "*fp32"] if table else ["*i64", None, None]
    kinds = [*[tensor] * 4, "*i64", *angles, "*i64" if checked else None, "fp32", 4096, *plan.numbers]
    signature, fixed, attributes = {}, {}, {}
    # What the launcher would specialise on: alignment to 16, and integers that are 1.
    for index, (name, kind) in enumerate(zip(triton_ops.rotate_kernel.arg_names, kinds, strict=False)):
        if kind is None or kind == 1:
            signature[name], fixed[(index,)] = "constexpr", kind
            continue
        signature[name] = kind if isinstance(kind, str) else "i32"
        if (isinstance(kind, int) and kind % 16 == 0) or "*" in str(kind):
            attributes[(index,)] = [["tt.divisibility", 16]]
    constants = dict(plan.constants)
    warps = constants.pop("num_warps")
    for index, name in enumerate(triton_ops.rotate_kernel.arg_names):
        if name in constants:
            signature[name], fixed[(index,)] = "constexpr", constants[name]
    source = ASTSource(triton_ops.rotate_kernel, signature, fixed, attributes)
    target = GPUTarget("cuda", 90, 32)
    return triton.compile(source, target=target, options={"num_warps": warps}).asm["sass"]


WIDTHS = {"128": 16, "64": 8, "": 4, "U8": 1, "U16": 2, "S16": 2}


def accesses(code, instruction):
    """{bytes: how many} of the global loads (LDG) or stores (STG)."""
    found = Counter(re.findall(rf"\b{instruction}\.E(?:\.(\d+|U8|U16|S16))?", code))
    return {WIDTHS[width]: count for width, count in found.items()}


def moved(code, instruction):
    """Bytes that one thread moves."""
    return sum(width * count for width, count in accesses(code, instruction).items())


@pytest.mark.parametrize("table", [False, True])
@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("case", [name for name in SIZES if name not in ("131,072 tokens", "decode", "prefill")])
def test_machine_code_writes_16_bytes_and_spills_nothing(case, interleaved, table):
    plan = plan_of(SIZES[case], interleaved=interleaved, table=table)
    code = machine_code(plan, table=table)
    assert not re.search(r"\b(LDL|STL)\b", code)  # no spills, no stack
    assert not re.search(r"\bD(MUL|ADD|FMA|SETP)\b", code)  # no double precision
    assert "CALL" not in code  # no 64-bit division
    reads, writes = accesses(code, "LDG"), accesses(code, "STG")
    assert min(*reads, *writes) >= 4
    # k's heads, and 16 pairs of a head, may be too few to give every thread 16 bytes.
    whole = case == "one head of 64" or (case.startswith("32 + 8") and not table)
    assert 16 * writes[16] >= (1.0 if whole else 0.66) * moved(code, "STG")
    threads = 32 * plan.constants["num_warps"]
    q = SIZES[case][0]
    size = 2 * plan.constants["TOKENS"] * q[3] * (plan.constants["X_BLOCK"] + plan.constants["Y_BLOCK"])
    assert moved(code, "STG") * threads >= size


def test_checked_table_writes_its_flag_and_nothing_else():
    plans = [plan_of(SIZES["32 + 8 heads of 128"], table=True, checked=checked) for checked in (False, True)]
    free, checked = (
        accesses(machine_code(plan, table=True, checked=bool(place)), "STG") for place, plan in enumerate(plans)
    )
    assert checked == free | {8: free.get(8, 0) + 2}


def test_rotation_in_place_leaves_the_tail_alone():
    sizes = SIZES["32 of 80 rotate"]
    in_place, copied = (plan_of(sizes, in_place=flag) for flag in (True, False))
    turned = 2 * 64 * 32  # bytes of a token's rotated dimensions
    code = machine_code(in_place)
    threads = 32 * in_place.constants["num_warps"]
    assert moved(code, "STG") * threads == turned
    # A thread also reads its position, and the 8 frequencies of its pairs.
    assert moved(code, "LDG") * threads == turned + threads * 8 * (1 + 8)
    whole = machine_code(copied)
    assert moved(whole, "STG") * 32 * copied.constants["num_warps"] >= 2 * 64 * 80


def test_float32_is_moved_16_bytes_at_a_time():
    plan = plan_of(((2, 8192, 32, 128), (2, 8192, 8, 128), 128), dtype=torch.float32)
    code = machine_code(plan, dtype=torch.float32)
    assert accesses(code, "LDG")[16] == accesses(code, "STG")[16] == 20
    assert not re.search(r"\b(LDL|STL)\b", code)
