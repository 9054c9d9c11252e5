"""The numbers in the sentences of the Scaling page, against float64 mathematics computed here."""

import pytest

from rope_viz.embedding.scaling import METHODS, ClippedRope, DynamicNtk, LongRope, Proportional, Yarn
from rope_viz.embedding.spec import RopeSpec
from rope_viz.figures import words
from rope_viz.models.catalog import model_specs
from rope_viz.pages.scaling import words as scaling
from tests.figures.specs import every, kinds, near, plain, scaled


def growth(spec):
    """The factor of dynamic NTK at the target length, where the base is base·g^(d/(d−2))."""
    factor = spec.scaling.factor
    found = factor * max(spec.target, spec.context) / spec.context - (factor - 1.0)
    assert plain(spec)[1] / scaled(spec)[1] == pytest.approx(found ** (2 / (spec.rotary_dim - 2)), rel=1e-12)
    return found


def full_factor(spec):
    return growth(spec) if isinstance(spec.scaling, DynamicNtk) else spec.scaling.factor_for(spec)


@every
def test_every_pair_is_counted_in_its_band(spec):
    kept, lowered, raised, zero = kinds(spec)
    floor = 1.0 if isinstance(spec.scaling, LongRope) else 1.0 / max(full_factor(spec), 1.0)
    if isinstance(spec.scaling, ClippedRope):
        floor = 0.0  # it divides by no factor
    divided = [1.0 / share for share in lowered if share <= floor * (1.0 + 1e-9)]
    sentence = words.describe_bands(spec)
    bands = {"kept": kept, "blended": len(lowered) - len(divided), "divided": len(divided), "sped": len(raised)}
    bands["zero"] = zero
    shown = {band: count for band, count in bands.items() if count}
    if len(shown) == 1:
        assert sentence.entries[0] == f"bands.{'only' if spec.pairs == 1 else 'all'}.{next(iter(shown))}"
    else:
        assert sentence.entries[0] == ("bands.kept" if kept else "bands.none_kept")
    assert {band: sentence.values.get(band, 0) for band in bands} == bands
    assert sentence.values["pairs"] == spec.pairs == sum(bands.values())
    for name, factors in (("divided", divided), ("sped", raised)):
        if factors:
            assert sentence.values[f"{name}_low"] == near(min(factors))
            assert sentence.values[f"{name}_high"] == near(max(factors))


@every
def test_the_method_has_its_factor_at_both_lengths(spec):
    sentence = scaling.name_method(spec)
    if isinstance(spec.scaling, LongRope):
        assert sentence.entries == ("method.divisors",)
        return
    assert sentence.values.get("factor", 1.0) == near(spec.scaling.factor_for(spec))
    assert sentence.values.get("share") == (spec.scaling.share if isinstance(spec.scaling, Proportional) else None)
    if "method.grown" in sentence.entries:
        assert isinstance(spec.scaling, DynamicNtk)
        assert sentence.values["grown"] == near(growth(spec))
        assert sentence.values["target"] == spec.target
    else:
        assert full_factor(spec) == near(spec.scaling.factor_for(spec))


@every
def test_the_comparison_of_an_unscaled_model_has_its_factor(spec):
    sentence = scaling.describe_scaling(spec)
    assert ("unscaled.kept" in sentence.entries) == (spec.scaling.name == "none")
    if spec.scaling.name == "none":
        wanted = spec.target / spec.context
        assert sentence.values["factor"] == near(wanted if wanted > 1.0 else 4.0)


@every
def test_logits_are_multiplied_by_the_squared_factor(spec):
    factor = spec.attention_factor(spec.target)
    logits = scaling.describe_logits(spec)
    assert ("logits.same" in logits.entries) == (abs(factor**2 - 1.0) <= 1e-9)
    assert logits.values.get("logits", 1.0) == near(factor**2)
    values = scaling.describe_attention_factor(spec).values
    assert (values.get("factor", 1.0), values.get("square", 1.0)) == (near(factor), near(factor**2))


def test_a_factor_close_to_1_has_more_digits():
    close, far = (RopeSpec(scaling=Yarn(4.0, attention=attention)) for attention in (1.0000001, 0.7))
    assert "multiplied by 1.0000002." in scaling.describe_logits(close)
    assert "multiplied by 0.49." in scaling.describe_logits(far)


def test_yarn_on_qwen_keeps_24_of_64_pairs():
    sentence = scaling.describe_scaling(model_specs("qwen3-8b-yarn")[""])
    assert sentence.startswith("The method is YaRN with factor s = 4. **24 of 64 pairs keep their frequency.**")
    assert sentence.values["logits"] == pytest.approx(1.296, abs=5e-4)


def test_cope_names_the_pairs_that_it_fades():
    spec = RopeSpec(128, base=500_000.0, context=8192, target=32768, scaling=METHODS["cope"]())
    text = scaling.name_method(spec)
    # Pairs 35 to 63 of Llama 3 8B do not complete a turn in 8,192 tokens.
    assert str(text) == "The method is CoPE: it fades out the 29 lowest frequencies, down to zero."
