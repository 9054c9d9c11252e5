"""A stand-in for a GPU, on the CPU: tensors that cannot be read without a wait, which it counts, and a stream.

The stream runs kernels and copies to the host only when it is told to, as a GPU that is far behind would. Triton's
interpreter runs the kernels, so this needs a process with TRITON_INTERPRET=1.

`python gpu_stand_in.py` prints, as JSON, how often each scenario waited and what it raised.
"""

import json
import sys
from contextlib import ExitStack, contextmanager
from functools import partial
from unittest import mock

import numpy as np
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten

from rope_viz.kernels import flash_attn, operators, reference, rotate, rotate_qk, triton_ops
from rope_viz.kernels import transformer_engine as te
from rope_viz.kernels import transformers as hf

GPU = torch.device("cuda", 0)
READING = {
    *"item __int__ __float__ __bool__ __index__ __contains__ tolist numpy cpu equal allclose nonzero unique".split()
}


class OnGPU(torch.Tensor):
    """A tensor in the memory of the stand-in."""

    is_cuda = property(lambda self: True)
    device = property(lambda self: GPU)


def put(tensor):
    return tensor.as_subclass(OnGPU)


def take(value):
    return value.as_subclass(torch.Tensor) if isinstance(value, OnGPU) else value


class Machine(TorchFunctionMode):
    """Runs torch's functions on the CPU and counts the `waits` that they would mean with tensors on a GPU."""

    def __init__(self):
        super().__init__()
        self.waits, self.queue, self.pinned = [], [], set()

    def run(self):
        """Run what the stream has been given so far."""
        for step in self.queue:
            step()
        self.queue.clear()

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs, name = kwargs or {}, getattr(func, "__name__", "")
        if str(func).startswith("rope_viz."):  # the dispatcher would pass plain tensors
            with self:
                return getattr(operators, str(func).split(".")[1])(*args, **kwargs)
        if name == "pin_memory":
            self.pinned.add(args[0].data_ptr())
            return args[0]
        given = [value for value in (*args, *kwargs.values()) if isinstance(value, torch.Tensor)]
        on_gpu = [isinstance(value, OnGPU) for value in given]
        target = kwargs.get("device", next((arg for arg in args[1:] if isinstance(arg, (str, torch.device))), None))
        goes_up = target is not None and torch.device(target).type == "cuda"
        if name == "copy_" and any(on_gpu) and not all(on_gpu):
            host = given[on_gpu.index(False)]
            if kwargs.get("non_blocking") and host.data_ptr() in self.pinned:
                out, source = map(take, args[:2])
                self.queue.append(lambda: out.copy_(source))
                return args[0]
            self.waits.append(name)
        elif name in READING and any(on_gpu):
            self.waits.append(name)
            self.run()
        elif any(on_gpu) and target is not None and not goes_up:
            self.waits.append(name)  # to the host
        elif goes_up and name in ("to", "as_tensor", "tensor") and not any(on_gpu):
            self.waits.append(name)  # from the host
        if target is not None:
            args = [torch.device("cpu") if isinstance(arg, (str, torch.device)) else arg for arg in args]
            kwargs = kwargs | ({"device": "cpu"} if "device" in kwargs else {})
        leaves, tree = tree_flatten((args, kwargs))
        taken = [take(leaf) for leaf in leaves]
        with torch._C.DisableTorchFunctionSubclass():
            args, kwargs = tree_unflatten(taken, tree)
            result = func(*args, **kwargs)
        goes_down = name in ("cpu", "numpy") or (target is not None and not goes_up)
        if goes_down or not (goes_up or any(isinstance(leaf, OnGPU) for leaf in leaves)):
            return result
        same = [leaf for leaf, plain in zip(leaves, taken, strict=True) if plain is result and leaf is not plain]
        if same:
            return same[0]
        return tree_map(lambda value: put(value) if isinstance(value, torch.Tensor) else value, result)


class Event:
    machine = None

    def record(self, *_):
        self.done = False
        self.machine.queue.append(lambda: setattr(self, "done", True))

    def query(self):
        return self.done


@contextmanager
def machine():
    """Yield a `Machine` whose stream takes the kernels' launches."""
    here, kernel = Machine(), triton_ops.rotate_kernel

    class Launcher:
        def __getitem__(self, grid):
            def launch(*arguments, **constants):
                arguments = [take(argument) for argument in arguments]
                here.queue.append(lambda: run_kernel(kernel, grid, arguments, constants))

            return launch

    replaced = {
        "torch.cuda.Event": Event,
        "torch.cuda.current_stream": lambda *_: None,
        "torch.cuda.is_current_stream_capturing": lambda: False,
        "torch.cuda.current_device": lambda: 0,
        "torch.cuda.device": lambda _: mock.MagicMock(),
    }
    Event.machine = here
    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(triton_ops, "rotate_kernel", Launcher()))
        stack.enter_context(mock.patch.object(operators, "is_plain", return_value=True))
        for name, value in replaced.items():
            stack.enter_context(mock.patch(name, value))
        with here:
            yield here


def run_kernel(kernel, grid, arguments, constants):
    with torch._C.DisableTorchFunction():
        kernel[grid](*arguments, **constants)


ROWS, PAIRS = 50, 8
INV_FREQ = 10_000.0 ** (-np.arange(PAIRS) / PAIRS)
COS, SIN = (np.float32(f(np.outer(np.arange(ROWS), INV_FREQ))) for f in (np.cos, np.sin))


def tensors(*heads, tokens=6, batch=2):
    return [torch.randn(batch, tokens, count, 2 * PAIRS) for count in heads]


def table():
    return put(torch.from_numpy(COS)), put(torch.from_numpy(SIN))


def by_table(call, *, wrong=None):
    """Rotate q and k by new positions on the GPU; the call `wrong` has one outside the table."""
    q, k = tensors(4, 2)
    places = torch.randint(0, ROWS, (2, 6))
    if call == wrong:
        places[1, 3] = ROWS + 7
    got = rotate_qk(put(q), put(k), put(places.clone()), table=TABLE, pairing="half")

    def check():
        rows = places.clip(0, ROWS - 1).numpy()
        for x, y in zip((q, k), got, strict=True):
            want = reference.rotate(x.numpy(), rows, table=(COS, SIN), pairing="half")
            np.testing.assert_allclose(take(y).numpy(), want, atol=1e-5)

    return check


def packed(call, *, wrong=None):
    """Rotate packed sequences of new bounds by flash-attention's function."""
    (x,) = tensors(2, tokens=9, batch=1)
    bounds = torch.tensor([0, call, 10 if call == wrong else 9], dtype=torch.int32)
    flash_attn.apply_rotary_emb(put(x[0]), *TABLE, cu_seqlens=put(bounds), max_seqlen=9)


def packed_angles(call):
    """Rotate packed sequences of new bounds by Transformer Engine's function."""
    (x,) = tensors(2, tokens=9, batch=1)
    bounds = torch.tensor([0, call, 9], dtype=torch.int32)
    te.apply_rotary_pos_emb(put(x[0]), FREQS, "thd", cu_seqlens=put(bounds), fused=True)


def from_starts(call):
    """Rotate from new start positions by flash-attention's function."""
    (x,) = tensors(2)
    flash_attn.apply_rotary_emb(put(x), *TABLE, seqlen_offsets=put(torch.tensor([call, 3])))


def angles_from_starts(call, *, fused, wrong=None):
    """Rotate from new start positions by Transformer Engine's function."""
    (x,) = tensors(2)
    start = ROWS if call == wrong else call
    te.apply_rotary_pos_emb(put(x), FREQS, "bshd", put(torch.tensor([start, 3])), fused=fused)


def exact(call, *, dtype=torch.float32):
    """Rotate by one inv_freq on the GPU and new positions."""
    x, places = tensors(2)[0].to(dtype), torch.randint(0, 9_000_000, (6,))
    got = rotate(put(x), put(places.clone()), INCREASING, pairing="half")

    def check():
        want = reference.rotate(x.numpy(), places.numpy(), INV_FREQ.astype(np.float32), pairing="half")
        np.testing.assert_allclose(take(got).numpy(), want, atol=1e-5 if dtype == torch.float32 else 1e-13)

    return check


def on_axes(call):
    """Rotate by one set of weights and new positions on two axes."""
    (x,) = tensors(2)
    rotate(put(x), put(torch.randint(0, 9, (2, 6, 2))), weights=WEIGHTS, pairing="half")


def in_a_model(call):
    """Rotate one layer of ten by cos and sin of transformers."""
    q, k = tensors(4, 2)
    hf.apply_rotary_pos_emb(put(q), put(k), *WIDE, unsqueeze_dim=2)


TABLE = put(torch.from_numpy(COS)), put(torch.from_numpy(SIN))
WIDE = [put(torch.from_numpy(part[None, :6]).repeat(1, 1, 2)) for part in (COS, SIN)]
FREQS = put(te.RotaryPositionEmbedding(2 * PAIRS)(ROWS))
INCREASING = put(torch.from_numpy(INV_FREQ).float())
WEIGHTS = np.stack((INV_FREQ, INV_FREQ[::-1]), axis=1)

SCENARIOS = {
    "table": by_table,
    "a position outside the table": partial(by_table, wrong=2),
    "packed": packed,
    "packed, Transformer Engine": packed_angles,
    "wrong bounds": partial(packed, wrong=2),
    "starts": from_starts,
    "starts, Transformer Engine": partial(angles_from_starts, fused=True),
    "starts, Transformer Engine, plain": partial(angles_from_starts, fused=False),
    "a wrong start, plain": partial(angles_from_starts, fused=False, wrong=2),
    "inv_freq": exact,
    "inv_freq, float64": partial(exact, dtype=torch.float64),
    "weights": on_axes,
    "transformers": in_a_model,
}


def report(scenario):
    """Return the waits of ten calls, and the calls that raised with their messages.

    The GPU catches up only after every third call.
    """
    torch.manual_seed(0)
    raised, checks = [], []
    with machine() as gpu:
        for call in range(10):
            try:
                checks.append(scenario(call))
            except ValueError as error:
                raised.append([call, str(error)])
            if call % 3 == 2:
                gpu.run()
        waits = list(gpu.waits)
        gpu.run()
    for check in filter(None, checks):
        check()
    return {"waits": waits, "raised": raised}


if __name__ == "__main__":
    json.dump({name: report(scenario) for name, scenario in SCENARIOS.items()}, sys.stdout, indent=1)
