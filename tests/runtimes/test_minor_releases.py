"""Every minor release of transformers 5 answers as its executed classes (tests/goldens/make_releases_5.py)."""

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from rope_viz.cli.main import main
from rope_viz.runtimes import emulate, resolve_release
from rope_viz.runtimes.history import find_changes
from rope_viz.runtimes.releases import MINORS, find_minor, find_patch, is_between
from tests.offenders import for_each

GOLDENS = Path(__file__).parents[1] / "goldens"
sys.path.insert(0, str(GOLDENS))
from releases_5_cases import list_cases  # noqa: E402

GOLDEN = json.loads((GOLDENS / "releases_5.json").read_text())
FREQUENCIES = GOLDEN["frequencies"]
ROWS = {row["name"]: row for row in GOLDEN["rows"]}
CASES = list_cases()
# Today's release reads these flat parameters with a warning or not at all, and so does the reader.
UNREADABLE = ("params modernbert", "params modernbert-decoder", "class sam3_vit_model")


def find_answer(row, version):
    """The answer of a release: the last one that begins with it or before."""
    found = None
    for first, answer in row["answers"].items():
        found = answer if find_minor(first) <= find_minor(version) else found
    return found


def compare_layers(row, version, answer):
    """Compare every layer type of one case with what was executed; None where nothing is claimed."""
    for layer in answer.get("layers", {"": None}):
        place = {"length": row["length"], "layer_type": layer or None}
        found = emulate(row["config"], "transformers", version=version, **place)
        if found.known.how == "not known":
            continue
        assert found.supported == ("layers" in answer), (version, layer, found.reason)
        if not found.supported:
            continue
        index, factor = answer["layers"][layer]
        assert found.inv_freq.size == len(FREQUENCIES[index]), (version, layer)
        np.testing.assert_allclose(found.inv_freq, FREQUENCIES[index], rtol=2e-5, atol=1e-12)
        assert found.attention_factor == pytest.approx(factor, rel=1e-5), (version, layer)
        today = emulate(row["config"], "transformers", **place)
        scalings = [one.get("scaling") for one in (answer, find_answer(row, "5.24.0"))]
        if all(scalings) and max(map(len, scalings)) == 1 and today.softmax_multiplier:
            ratio = found.softmax_multiplier / today.softmax_multiplier
            assert ratio == pytest.approx(scalings[0][0] / scalings[1][0], rel=1e-5), (version, layer)


def test_all_minor_releases_were_executed():
    assert tuple(GOLDEN["releases"]) == (*reversed(MINORS), "5.24.0")
    assert [find_minor(version) for version in MINORS] == [(5, minor) for minor in range(23, -1, -1)]


@for_each([name for name in ROWS if name not in UNREADABLE])
def test_older_release_computes_what_it_was_seen_to_compute(name):
    row = ROWS[name]
    assert row["config"]["model_type"] == CASES[name][0]["model_type"]
    for version in GOLDEN["releases"][:-1]:
        answer = find_answer(row, version)
        if answer is None or "not_built" in answer:
            continue
        try:
            compare_layers(row, version, answer)
        except ValueError:
            assert "layers" not in answer, version


@for_each(GOLDEN["same"])
def test_case_that_no_release_changed_has_one_answer(name):
    config, length = CASES[name]
    try:
        today = emulate(config, "transformers", length=length)
    except ValueError:
        return
    for version in MINORS:
        found = emulate(config, "transformers", version=version, length=length)
        if found.known.how == "not known" or "does not exist" in found.reason:
            continue
        assert found.supported == today.supported, (version, found.reason)
        np.testing.assert_array_equal(found.inv_freq, today.inv_freq, version)
        assert (found.attention_factor, found.softmax_multiplier) == (
            today.attention_factor,
            today.softmax_multiplier,
        ), version


def test_patch_release_answers_as_its_minor_release():
    for asked in ("5.10.4", "5.10.2", "5.10.0", "5.10"):
        assert resolve_release("transformers", asked) == ("transformers", "5.10.4")
    assert resolve_release("transformers", "5.24.1") == ("transformers", "5.24.0")
    assert (find_patch("5.99.0"), find_patch("4.57.6"), find_patch("5.x")) == (None, None, None)
    for wrong in ("5.99", "5.10.4.1", "4.50.0"):
        with pytest.raises(ValueError, match="must be one of"):
            resolve_release("transformers", wrong)


def test_span_has_its_first_release_and_not_its_last():
    assert [version for version in MINORS if is_between(version, ["5.15", "5.18"])] == ["5.17.0", "5.16.1", "5.15.1"]
    assert [version for version in MINORS if is_between(version, "5.2")] == ["5.1.0", "5.0.0"]
    assert not is_between("5.0.0", None)


PUBLIC = {
    # Public reports: transformers#48241, #48486, #45945, #47435.
    "minimax-m2.5": ("", "other pairs rotate", "5.18.0", "rotary_dim is not read"),
    "olmo-3.1-32b": ("sliding_attention", "×8 at pair", "5.13.1", "All layers have the base and the scaling"),
    "deepseek-v2": ("", "softmax ×0.6291", "5.", "Not done there: The softmax scale is multiplied"),
}


@pytest.mark.parametrize("model", sorted(PUBLIC))
def test_reported_changes_are_found_with_their_release(model):
    layer, verdict, since, reason = PUBLIC[model]
    (found,) = find_changes(CASES[f"catalog {model}"][0], "5.10.0")
    assert (found.layer, found.history.spans[-1].words) == (layer, "agrees")
    assert verdict in found.history.spans[0].words
    assert found.history.spans[-1].releases[0].startswith(since)
    assert " ".join(found.reasons).startswith(reason)


def test_two_layers_of_olmo_3_differ_as_64_do():
    two = CASES["catalog olmo-3.1-32b"][0] | {"num_hidden_layers": 2, "layer_types": ["sliding_attention"] * 2}
    before, after = (
        emulate(two, "transformers", version=version, layer_type="sliding_attention") for version in ("5.12", "5.13")
    )
    assert before.attention_factor == pytest.approx(1.2079442)
    assert after.attention_factor == 1.0


def test_command_line_says_which_patch_was_run_and_what_changed(capsys):
    assert main(["runtimes", "minimax-m2.5", "--release", "transformers=5.10.0"]) == 0
    out = capsys.readouterr().out
    assert "transformers 5.10.0: 5.10.4 was executed" in out
    assert re.search(r"other pairs rotate in 5\.10\.4 to 5\.\d+\.\d, agrees since 5\.\d+\.\d\. rotary_dim is not", out)
    assert main(["runtimes", "qwen3-8b", "--release", "transformers=5.0.0"]) == 0
    assert "transformers 5.0.0 to 5.24.0: no change for this config." in capsys.readouterr().out
    assert main(["runtimes", "minimax-m3", "--release", "transformers=5.0"]) == 0
    assert "minimax_m3_vl does not exist in transformers 5.0.0" in capsys.readouterr().out


@pytest.mark.parametrize("version", ["9.9", "5.99", "5.x"])
def test_a_wrong_release_is_answered_with_ranges(version, capsys):
    assert main(["runtimes", "qwen3-8b", "--release", f"transformers={version}"]) == 2
    assert f"must be one of 5.24.0, 4.57.6, 4.52.4, 4.43.4, 5.0 to 5.23, got '{version}'" in capsys.readouterr().err
    assert main(["runtimes", "qwen3-8b", "--release", "mlx-lm=0.1"]) == 2
    assert "are known for transformers, vllm and sglang, not for mlx-lm" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("runtime", "written", "found"),
    [("transformers", "v5.3", "5.3.0"), ("transformers", "4.57", "4.57.6"), ("vllm", "v0.33", "0.33.0")],
)
def test_a_minor_release_or_a_tag_is_enough(runtime, written, found):
    assert resolve_release(runtime, written) == (runtime, found)
    with pytest.raises(ValueError, match="must be one of"):
        resolve_release("sglang", "0.5")
