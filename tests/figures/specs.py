"""Specs of every kind, and frequencies computed from their definition, for the tests of sentences."""

import dataclasses
import math
import os
import random

import numpy as np
import pytest

from rope_viz.embedding.scaling import (
    METHODS,
    DynamicNtk,
    Linear,
    Llama3,
    LongRope,
    NtkAware,
    NtkByParts,
    PaperYarn,
    Proportional,
    Yarn,
)
from rope_viz.embedding.spec import RopeSpec
from rope_viz.figures.compared import alternative
from rope_viz.models.catalog import catalog, model_specs
from tests.offenders import for_each

# HYPOTHESIS_PROFILE=many adds all other specs and 2,000 random ones.
IS_THOROUGH = os.environ.get("HYPOTHESIS_PROFILE") == "many"
TAU = 2.0 * math.pi
BASE = RopeSpec(context=4096, target=32_768)
ONE_PAIR = RopeSpec(head_dim=16, rotary_dim=2, context=4096, target=32_768)


def with_scaling(spec, scaling):
    return dataclasses.replace(spec, scaling=scaling)


def every_spec():
    for model in catalog():
        for layer, spec in model_specs(model).items():
            yield f"{model} {layer}".strip(), spec
    for name in METHODS:
        yield name, alternative(BASE, name)
        one = alternative(ONE_PAIR, name)
        if one is not None:
            yield f"{name}, one pair", one
        yield f"{name}, target below trained", dataclasses.replace(alternative(BASE, name), target=1024)
        yield f"{name}, partly rotated", alternative(RopeSpec(96, 24, context=2048, target=16_384), name)
        odd = alternative(RopeSpec(96, 25, context=2048, target=16_384), name)
        if odd is not None:
            yield f"{name}, an odd part rotated", odd
    for kind in (Linear, NtkAware, DynamicNtk, NtkByParts, PaperYarn, Yarn, Llama3, Proportional):
        for factor in (0.5, 1e-9, 1e9):
            yield f"{kind.__name__} by {factor:g}", with_scaling(BASE, kind(factor=factor))
    for share in (0.0, 0.02, 0.25, 1.0):
        yield f"p = {share}", with_scaling(BASE, Proportional(share))
        yield f"p = {share} by 4", with_scaling(BASE, Proportional(share, 4.0))
    lists = (tuple(np.linspace(1.0, 2.0, 64).tolist()), tuple(np.geomspace(0.5, 64.8, 64).tolist()))
    yield "LongRoPE's long list", with_scaling(BASE, LongRope(*lists))
    yield "LongRoPE's short list", with_scaling(RopeSpec(), LongRope(*lists, factor=32.0))
    for low, high in ((32.0, 1.0), (1e-9, 1e9), (1e9, 1e-9), (4.0, 4.0), (1.0, 1.2), (0.1, 0.1)):
        for truncate in (True, False):
            yield f"β {high:g} {low:g} {truncate}", with_scaling(BASE, Yarn(4.0, high, low, truncate))
        yield f"α {high:g} {low:g}", with_scaling(BASE, PaperYarn(4.0, high, low))
        yield f"Llama {high:g} {low:g}", with_scaling(BASE, Llama3(4.0, high, low))
    for value in (0.0, -1e9, 1.0000001, 0.7, 1e9):
        yield f"attention {value:g}", with_scaling(BASE, Yarn(4.0, attention=value))
    yield "the largest base", RopeSpec(4096, base=1e30)
    yield "the smallest base", RopeSpec(64, base=1.0000001)
    yield "one token", RopeSpec(context=1, target=1, scaling=Yarn(4.0))
    yield "the longest", RopeSpec(context=1 << 31, scaling=Llama3(8.0))


def draw_spec(seed):
    """Return a random spec, of any size, length and method."""
    draw = random.Random(seed)
    head_dim = 2 * draw.randint(1, 160)
    rotary_dim = draw.choice([head_dim, draw.randint(2, head_dim)])
    context, target = (round(2 ** draw.uniform(6, 22)) for _ in range(2))
    spec = RopeSpec(head_dim, rotary_dim, base=10 ** draw.uniform(1, 8), context=context, target=target)
    return alternative(spec, draw.choice(list(METHODS))) or spec


SPECS = dict(every_spec())
# One spec of every method, models partly or oddly rotated, a single pair, and limits of sizes and parameters.
CHOSEN = {
    *METHODS,
    *("llama-3.1-8b", "yarn, partly rotated", "dynamic, an odd part rotated", "cope, an odd part rotated"),
    *("none, one pair", "yarn, one pair", "proportional, one pair", "longrope, one pair", "LongRoPE's long list"),
    *("linear, target below trained", "dynamic, target below trained", "Linear by 0.5", "Yarn by 1e+09"),
    *("p = 0.0", "p = 0.25 by 4", "β 1 32 True", "β 4 4 False", "α 1e-09 1e+09", "Llama 1 32"),
    *("attention 0", "attention -1e+09", "attention 1", "the largest base", "one token", "the longest"),
}
MANY = {f"seed {seed}": draw_spec(seed) for seed in random.sample(range(1 << 32), 2000 if IS_THOROUGH else 0)}
every = for_each(SPECS | MANY if IS_THOROUGH else {name: SPECS[name] for name in sorted(CHOSEN)})


def near(expected, digits=4):
    return pytest.approx(expected, rel=0.51 * 10.0 ** (1 - digits), abs=1e-300)


def plain(spec):
    return [spec.base ** (-2.0 * i / spec.rotary_dim) for i in range(spec.pairs)]


def scaled(spec):
    return [float(each) for each in spec.inv_freq(spec.target)]


def turning_share(spec):
    return [request / before for request, before in zip(scaled(spec), plain(spec), strict=True)]


def kinds(spec):
    """Return how many pairs are unchanged, the shares of those lowered and raised, and how many have zero frequency."""
    share = turning_share(spec)
    kept = [each for each in share if abs(each - 1.0) <= 1e-9]
    slowed = [each for each in share if 0.0 < each < 1.0 - 1e-9]
    sped = [each for each in share if each > 1.0 + 1e-9]
    return len(kept), slowed, sped, share.count(0.0)


def to_bf16(values):
    """Rounded to the nearest bfloat16, ties to even, by the bits."""
    bits = np.asarray(values, dtype=np.float32).view(np.uint32).astype(np.uint64)
    rounded = (bits + 0x7FFF + ((bits >> np.uint64(16)) & np.uint64(1))) & np.uint64(0xFFFF0000)
    return rounded.astype(np.uint32).view(np.float32).astype(np.float64)
