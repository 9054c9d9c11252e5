"""Every derivative of a rotation is right, or refused with a sentence: again, forward, under torch.func, and later."""

import numpy as np
import pytest

from rope_viz.kernels import rotate, rotate_qk

torch = pytest.importorskip("torch")

from torch.autograd import forward_ad  # noqa: E402
from torch.func import grad, jvp, vmap  # noqa: E402

from rope_viz.kernels import flash_attn, tensor_cache  # noqa: E402
from rope_viz.kernels import transformer_engine as te  # noqa: E402
from rope_viz.kernels import transformers as hf  # noqa: E402

pytestmark = pytest.mark.float32_products

BATCH, TOKENS, HEADS, HEADDIM = 2, 3, 2, 6
INV_FREQ = 10_000.0 ** (-np.arange(2) / 2)
PLACES = torch.tensor([[0, 1, 2], [7, 5, 3]])
ANGLE = torch.rand(8, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) * 6
COS, SIN = ANGLE.cos(), ANGLE.sin()
COS_K, SIN_K = (2 * ANGLE).cos(), (2 * ANGLE).sin()
FREQS = torch.cat((ANGLE, ANGLE), dim=-1)[:, None, None]
UNPAIRED = torch.rand(8, 1, 1, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
BOUNDS = torch.tensor([0, 1, 3])
OPTIONS = {"pairing": "half", "attention_factor": 1.5}

X, QKV, KV, GROUPED, PACKED, FUSED = (
    (BATCH, TOKENS, HEADS, HEADDIM),
    (BATCH, TOKENS, 3, HEADS, HEADDIM),
    (BATCH, TOKENS, 2, HEADS, HEADDIM),
    (BATCH, TOKENS, HEADS + 2, HEADDIM),
    (TOKENS, HEADS, HEADDIM),
    (BATCH, TOKENS, 1, 4 * HEADDIM),
)

# A shape, and a function of a tensor of it, which may write to a copy of it.
ROTATIONS = {
    "rotate": (X, lambda x: rotate(x, PLACES, INV_FREQ, **OPTIONS)),
    "rotate, table": (X, lambda x: rotate(x, PLACES, table=(COS, SIN), **OPTIONS)),
    "rotate, inverse": (X, lambda x: rotate(x, PLACES, INV_FREQ, inverse=True, **OPTIONS)),
    "rotate_qk": (X, lambda x: torch.cat(rotate_qk(x, x[:, :, :1] ** 2, PLACES, INV_FREQ, **OPTIONS), dim=2)),
    "flash_attn": (X, lambda x: flash_attn.apply_rotary_emb(x, COS, SIN, seqlen_offsets=torch.tensor([2, 5]))),
    "flash_attn, in place": (X, lambda x: flash_attn.apply_rotary_emb(x * 1, COS, SIN, True, True, 1)),
    "flash_attn, packed": (
        PACKED,
        lambda x: flash_attn.apply_rotary_emb(x, COS, SIN, cu_seqlens=BOUNDS, max_seqlen=2),
    ),
    "flash_attn, packed in place": (
        PACKED,
        lambda x: flash_attn.apply_rotary_emb(x * 1, COS, SIN, False, True, 1, BOUNDS, 2),
    ),
    "flash_attn, qkv": (QKV, lambda x: flash_attn.apply_rotary_emb_qkv_(x * 1, COS, SIN)),
    "flash_attn, two tables": (QKV, lambda x: flash_attn.apply_rotary_emb_qkv_(x * 1, COS, SIN, COS_K, SIN_K)),
    "flash_attn, grouped": (GROUPED, lambda x: flash_attn.apply_rotary_emb_qkv_(x * 1, COS, SIN, num_heads_q=HEADS)),
    "flash_attn, kv": (KV, lambda x: flash_attn.apply_rotary_emb_kv_(x * 1, COS, SIN, True)),
    "Transformer Engine": (X, lambda x: te.apply_rotary_pos_emb(x, FREQS, "bshd", fused=True)),
    "Transformer Engine, unpaired": (X, lambda x: te.apply_rotary_pos_emb(x, UNPAIRED, "bshd", fused=True)),
    "Transformer Engine, sbhd": (X, lambda x: te.apply_rotary_pos_emb(x, FREQS, "sbhd", fused=True)),
    "Transformer Engine, packed": (
        PACKED,
        lambda x: te.apply_rotary_pos_emb(x, FREQS, "thd", cu_seqlens=BOUNDS, fused=True),
    ),
    "Transformer Engine, qkv": (
        FUSED,
        lambda x: torch.cat(
            te.apply_fused_qkv_rotary_pos_emb(x, FREQS, 2 * FREQS, [2 * HEADDIM, HEADDIM, HEADDIM], "bshd"), dim=2
        ),
    ),
    "transformers": (
        X,
        lambda x: torch.cat(
            hf.apply_rotary_pos_emb(
                x, x**2, COS[None, :TOKENS].repeat(1, 1, 2), SIN[None, :TOKENS].repeat(1, 1, 2), unsqueeze_dim=2
            ),
            dim=2,
        ),
    ),
}
# Published classes that cannot be asked for a tangent, which torch says, but for a second gradient.
CLASSES = {
    "FusedRoPEFunc": (X, lambda x: te.FusedRoPEFunc.apply(x, FREQS, None, "bshd", False, None, 1, 0)),
    "FusedQKVRoPEFunc": (
        FUSED,
        lambda x: torch.cat(
            te.FusedQKVRoPEFunc.apply(
                x, FREQS, 2 * FREQS, [2 * HEADDIM, HEADDIM, HEADDIM], None, "bshd", False, None, 1, 0
            ),
            dim=2,
        ),
    ),
    "ApplyRotaryEmb": (X, lambda x: flash_attn.ApplyRotaryEmb.apply(x, COS, SIN)),
}


def tensor(shape, seed=0):
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("name", [*ROTATIONS, *CLASSES])
def test_the_gradient_can_be_differentiated_again(name):
    shape, function = (ROTATIONS | CLASSES)[name]
    x = tensor(shape).requires_grad_()
    assert torch.autograd.gradcheck(function, (x,), fast_mode=True)
    assert torch.autograd.gradgradcheck(lambda x: function(x) ** 2, (x,), fast_mode=True)


@pytest.mark.parametrize("name", ROTATIONS)
def test_the_tangent_is_the_derivative_along_it(name):
    shape, function = ROTATIONS[name]
    x, along = tensor(shape), tensor(shape, 1)
    step = 1e-6
    want = (function(x + step * along) - function(x - step * along)) / (2 * step)
    y, tangent = jvp(function, (x,), (along,))
    torch.testing.assert_close(y, function(x))
    torch.testing.assert_close(tangent, want, atol=1e-8, rtol=1e-8)
    with forward_ad.dual_level():
        dual = forward_ad.unpack_dual(function(forward_ad.make_dual(x, along)))
        torch.testing.assert_close(dual.tangent, tangent)


@pytest.mark.parametrize("name", ROTATIONS)
def test_torch_func_agrees_with_autograd(name):
    shape, function = ROTATIONS[name]
    x = tensor(shape).requires_grad_()
    (want,) = torch.autograd.grad(function(x).sin().sum(), x)
    torch.testing.assert_close(grad(lambda x: function(x).sin().sum())(x.detach()), want)
    many = torch.stack([x.detach(), x.detach() + 1])
    torch.testing.assert_close(vmap(function)(many), torch.stack([function(part) for part in many]))
    # One gradient per sample, as for the noise of private learning.
    each = vmap(grad(lambda x: function(x).sin().sum()))(many)
    torch.testing.assert_close(each[0], want)


def test_a_batch_may_have_positions_and_tables_of_its_own():
    x, places = tensor((3, TOKENS, HEADS, HEADDIM)), torch.tensor([[0, 1, 2], [5, 5, 5], [2, 1, 0]])
    turned = vmap(lambda x, places: rotate(x, places, INV_FREQ, **OPTIONS))(x, places)
    torch.testing.assert_close(turned, rotate(x, places, INV_FREQ, **OPTIONS))
    tables = torch.stack([COS, COS_K, SIN]), torch.stack([SIN, SIN_K, COS])
    turned = vmap(lambda x, cos, sin: rotate(x, [0, 1, 2], table=(cos, sin), **OPTIONS))(x, *tables)
    each = [rotate(x[i], [0, 1, 2], table=(tables[0][i], tables[1][i]), **OPTIONS) for i in range(3)]
    torch.testing.assert_close(turned, torch.stack(each))
    turned = vmap(lambda x: rotate(x, [0, 1, 2], INV_FREQ, **OPTIONS), in_dims=1, out_dims=1)(x.transpose(0, 1))
    torch.testing.assert_close(turned.transpose(0, 1), rotate(x, [0, 1, 2], INV_FREQ, **OPTIONS))


@pytest.mark.parametrize("what", ["inv_freq", "table"])
def test_learned_angles_have_no_tangent_and_raise(what):
    frequencies = torch.as_tensor(INV_FREQ.copy())
    call = {
        "inv_freq": lambda f: rotate(tensor(X), PLACES, f, **OPTIONS),
        "table": lambda f: rotate(tensor(X), PLACES, table=(f.expand(8, 2), f.expand(8, 2)), **OPTIONS),
    }[what]
    with pytest.raises(ValueError, match="no gradient"):
        jvp(call, (frequencies,), (frequencies,))
    with pytest.raises(ValueError, match="no gradient"):
        grad(lambda f: call(f).sum())(frequencies)


def test_out_argument_has_no_tangent_and_raises():
    def write(x):
        return rotate(x, PLACES, INV_FREQ, out=torch.empty_like(x), **OPTIONS)

    x = tensor(X)
    for call in (
        lambda: jvp(write, (x,), (x,)),
        lambda: vmap(write)(x[None]),
        lambda: grad(lambda x: write(x).sum())(x),
    ):
        with pytest.raises(ValueError, match="leave it out"):
            call()
    with pytest.raises(ValueError, match="in place"):
        vmap(lambda x: flash_attn.apply_rotary(x, COS, SIN, inplace=True))(x[None])


def test_one_output_alone_may_be_differentiated():
    q, k = tensor(X).requires_grad_(), tensor(X, 1).requires_grad_()
    turned, _ = rotate_qk(q, k, PLACES, INV_FREQ, **OPTIONS)
    got = torch.autograd.grad(turned.sin().sum(), q)[0]
    want = torch.autograd.grad(rotate(q, PLACES, INV_FREQ, **OPTIONS).sin().sum(), q)[0]
    torch.testing.assert_close(got, want)


def test_tensors_made_in_inference_mode_work_in_training():
    with torch.inference_mode():
        made = [part.clone() for part in (COS, SIN, FREQS, PLACES, torch.as_tensor(INV_FREQ.copy()), BOUNDS)]
    cos, sin, freqs, places, inv_freq, bounds = made
    flash = flash_attn.RotaryEmbedding(HEADDIM)
    with torch.inference_mode():
        flash(torch.zeros(QKV))
        te.apply_rotary_pos_emb(tensor(X), FREQS, "bshd", fused=True)  # remembers cos and sin of FREQS
    calls = [
        lambda x: rotate(x, places, inv_freq, **OPTIONS),
        lambda x: rotate(x, places, table=(cos, sin), **OPTIONS),
        lambda x: flash_attn.apply_rotary_emb(x, cos, sin),
        lambda x: flash_attn.apply_rotary_emb(x, cos, sin, inplace=True),
        lambda x: flash_attn.apply_rotary_emb(x[0], cos, sin, cu_seqlens=bounds, max_seqlen=2),
        lambda x: flash_attn.apply_rotary_emb_kv_(x[:, :, None].repeat(1, 1, 2, 1, 1), cos, sin),
        lambda x: flash(x[:, :, None].float().repeat(1, 1, 3, 1, 1)),
        lambda x: te.apply_rotary_pos_emb(x, freqs, "bshd", fused=True),
        lambda x: te.apply_rotary_pos_emb(x, FREQS, "bshd", fused=True),
        lambda x: te.FusedRoPEFunc.apply(x, freqs, None, "bshd", False, None, 1, 0),
        lambda x: hf.apply_rotary_pos_emb(x, x, *(p[None, :TOKENS].repeat(1, 1, 2) for p in (cos, sin)), 2)[0],
    ]
    for call in calls:
        x = tensor(X).requires_grad_()
        call(x).sum().backward()
        assert x.grad.abs().max() > 0


def test_values_cached_in_inference_mode_work_with_gradients():
    double = tensor_cache.cache_last(lambda t: t * 2)
    t = torch.ones(2)
    with torch.inference_mode():
        assert not double(t).is_inference()
        assert not double(torch.ones(2)).is_inference()


@pytest.mark.parametrize("cast", ["bfloat16", "half", "double", "bfloat16 and back"])
@pytest.mark.parametrize("scale_base", [None, 512.0])
def test_cast_model_retains_its_angles(cast, scale_base):
    """Of bf16 frequencies the angle at 4,095 is 1.8 radians off."""
    module = flash_attn.RotaryEmbedding(64, scale_base=scale_base)
    engine = te.RotaryPositionEmbedding(64)
    for part in (module, engine):
        part.to(getattr(torch, cast.split()[0]))
        if "back" in cast:
            part.float()
    angle = torch.outer(torch.arange(4096.0), 10_000.0 ** (-torch.arange(32) / 32))
    torch.testing.assert_close(engine(4096)[:, 0, 0, :32], angle, atol=1e-3, rtol=1e-6)
    x = torch.zeros(1, 4096, 3, 1, 64)
    x[..., :32] = 1.0
    y = module(x.clone())
    power = (
        1.0
        if scale_base is None
        else (((torch.arange(32) / 32 + 0.4) / 1.4) ** ((torch.arange(4096.0) - 2048)[:, None] / scale_base))
    )
    top = 1.0 if scale_base is None else float(power.max())  # the error of a float32 angle grows with it
    torch.testing.assert_close(y[0, :, 0, 0, :32], angle.cos() * power, atol=2e-3 * top, rtol=1e-4)
    torch.testing.assert_close(y[0, :, 1, 0, 32:], angle.sin() / power, atol=2e-3 * top, rtol=1e-4)


def test_frequencies_of_one_s_own_survive_a_cast():
    module = flash_attn.RotaryEmbedding(8)
    module.inv_freq = torch.tensor([1.0, 0.3, 0.2, 0.1])
    module.to(torch.bfloat16)
    assert torch.equal(module.inv_freq, torch.tensor([1.0, 0.3, 0.2, 0.1]))
    # A rounded buffer that was put in its place by hand is made anew.
    module.inv_freq = module.inv_freq.bfloat16()
    assert torch.equal(module.read_float32("inv_freq"), flash_attn.RotaryEmbedding(8).inv_freq)


def test_a_module_from_the_meta_device_has_its_frequencies():
    module = flash_attn.RotaryEmbedding(8, scale_base=512.0, device="meta").to_empty(device="cpu")
    for name, want in flash_attn.RotaryEmbedding(8, scale_base=512.0).named_buffers():
        assert torch.equal(getattr(module, name), want)


@pytest.mark.parametrize("heads", [8, 5, 4, 0, -2, None])
def test_heads_of_q_that_do_not_fit_are_refused(heads):
    qkv = torch.zeros(1, 3, 4, 4)
    for kind in (AssertionError, ValueError):
        with pytest.raises(kind, match="num_heads_q"):
            flash_attn.apply_rotary_emb_qkv_(qkv, COS, SIN, num_heads_q=heads)


def test_heads_of_q_must_be_those_of_a_stack():
    stacked = torch.zeros(1, 3, 3, 4, 4)
    with pytest.raises(AssertionError, match="num_heads_q is 8, but qkv has 4"):
        flash_attn.apply_rotary_emb_qkv_(stacked, COS, SIN, num_heads_q=8)
    flash_attn.apply_rotary_emb_qkv_(stacked, COS, SIN, num_heads_q=4)
