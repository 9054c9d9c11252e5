"""A suite makes several figures in one run: the same bytes again, and nothing at all if one of them cannot be made."""

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from rope_viz.cli.main import main
from rope_viz.reports.draw import figure

pytestmark = pytest.mark.slow

EXAMPLE = Path(__file__).parents[2] / "examples" / "paper.toml"


def suite(folder, text):
    path = folder / "suite.toml"
    path.write_text(text)
    return ["figure", "--suite", str(path)]


def test_the_example_makes_its_files_twice_the_same(tmp_path, capsys):
    found = []
    for run in ("first", "second"):
        assert main(["figure", "--suite", str(EXAMPLE), "-o", str(tmp_path / run)]) == 0
        found.append({path.name: path.read_bytes() for path in (tmp_path / run).iterdir()})
    assert found[0] == found[1]
    assert sorted(found[0]) == ["roformer-figure-2.svg", "three-bases.svg", "yarn-decay.svg", "yarn-section-3.svg"]
    for content in found[0].values():
        width = ElementTree.fromstring(content).get("width")
        assert float(width.removesuffix("pt")) == pytest.approx(85 / 25.4 * 72)
    assert len(capsys.readouterr().out.split()) == 8


def column(folder, name, wanted):
    """A column of a figure of the example, by the end of its name."""
    text = EXAMPLE.read_text().replace(".svg", ".csv")
    assert main([*suite(folder, text), "-o", str(folder)]) == 0
    lines = [line for line in (folder / name).read_text().splitlines() if not line.startswith("#")]
    index = lines[0].split(",").index(wanted)
    return np.array([float(line.split(",")[index]) for line in lines[1:]])


def test_the_example_draws_the_bound_of_roformer(tmp_path):
    # Equation 37: the mean over j of |S_j|, S_j the sum of the first j terms exp(i (m − n) θ).
    theta = 10_000.0 ** (-2 * np.arange(64) / 128)
    distance = np.arange(251)
    partial = np.cumsum(np.exp(1j * distance[:, None] * theta), axis=1)
    expected = np.abs(partial).mean(axis=1)
    assert column(tmp_path, "roformer-figure-2.csv", "upper bound") == pytest.approx(expected, rel=1e-9)


def test_the_example_draws_the_ramp_of_yarn(tmp_path):
    # Equations 17 to 20 with α = 1, β = 32 and s = 16 for Llama 2: trained on 4,096 tokens, 64 pairs, base 10,000.
    theta = 10_000.0 ** (-np.arange(64) / 64)
    turns = 4096 * theta / (2 * np.pi)
    ramp = np.clip((turns - 1) / 31, 0, 1)
    expected = (1 - ramp) / 16 + ramp
    assert column(tmp_path, "yarn-section-3.csv", "NTK-by-parts") == pytest.approx(expected, rel=1e-9)


def test_an_entry_is_the_picture_of_its_address(tmp_path):
    text = """
    [[figure]]
    file = "sub/a.svg"
    picture = "decay/curves"
    model = "qwen3-8b"
    base = 5e5
    decay.length = "4k"
    log = false
    width = "120mm"
    variants = ["base=1e4", "scaling=yarn,factor=4"]
    labels = {"base 10,000" = "small"}
    """
    assert main(suite(tmp_path, text)) == 0
    query = "model=qwen3-8b&base=5e5&decay.length=4k&decay.log=no&variant1=base=1e4&variant2=method=yarn,factor=4"
    assert (tmp_path / "sub" / "a.svg").read_bytes() == figure(
        f"decay/curves?{query}&width=120mm&label.base 10,000=small"
    )


def test_a_config_next_to_the_suite_is_a_model_and_a_variant(tmp_path):
    own = {"model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32, "max_position_embeddings": 4096}
    (tmp_path / "own.json").write_text(json.dumps(own | {"rope_theta": 31337.0}))
    entry = '[[figure]]\nfile = "{}"\npicture = "frequencies/wavelengths"\n{}\n'
    text = entry.format("a.csv", 'model = "own.json"') + entry.format("b.csv", 'variants = ["model=own.json"]')
    assert main(suite(tmp_path, text)) == 0
    assert '"base": 31337.0' in (tmp_path / "a.csv").read_text()
    assert ",llama,Llama 3.1 8B" in (tmp_path / "b.csv").read_text().replace('"', "")


GOOD = '[[figure]]\nfile = "good.svg"\npicture = "decay/curves"\n'


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[[figure]", "not TOML"),
        ("", "at least one"),
        ("[look]\na = 1", "not 'look'"),
        (GOOD + GOOD, "two figures of the suite have this name"),
        (GOOD + '[[figure]]\nfile = "../a.svg"\npicture = "decay/curves"', "next to the suite"),
        (GOOD + '[[figure]]\nfile = "a.svg"', "needs picture"),
        (GOOD + '[[figure]]\nfile = "a.doc"\npicture = "decay/curves"', "must end in"),
        (GOOD + '[[figure]]\nfile = "a.svg"\npicture = "decay/curve"', "There is no picture"),
        (
            GOOD + '[[figure]]\nfile = "a.svg"\npicture = "decay/curves"\nlenght = 3',
            "a.svg: .* no choice 'lenght'",
        ),
        (GOOD + '[[figure]]\nfile = "a.svg"\npicture = "decay/curves"\nvariants = ["base"]', "a list such as base=5e5"),
        (GOOD + '[[figure]]\nfile = "a.svg"\npicture = "decay/curves"\nbase = {a = 1}', "no choice 'base.a'"),
        (GOOD + '[[figure]]\nfile = "a.svg"\npicture = "scaling/methods"\nvariants = ["base=1e4"]', "shows one curve"),
        ("[style]\nbase = 3\n" + GOOD, r"\[style\] has no key 'base'"),
    ],
)
def test_a_suite_with_a_mistake_writes_nothing(tmp_path, capsys, text, reason):
    assert main(suite(tmp_path, text)) == 2
    problem = capsys.readouterr().err
    assert re.search(reason, problem), problem
    assert [path.name for path in tmp_path.iterdir()] == ["suite.toml"]


@pytest.mark.parametrize("value", ["nan", "inf", "-inf"])
def test_a_number_that_is_none_is_named(tmp_path, capsys, value):
    for text in (f"[[figure]]\nfile='a.svg'\npicture='decay/curves'\nlength={value}", f"[style]\nwidth={value}\n"):
        more = "" if text.startswith("[[") else "[[figure]]\nfile='a.svg'\npicture='decay/curves'\n"
        (tmp_path / "suite.toml").write_text(text + more)
        assert main(["figure", "--suite", str(tmp_path / "suite.toml")]) == 2
        assert f": {value} is not a finite number" in capsys.readouterr().err


def test_a_link_does_not_lead_out_of_the_suite_s_folder(tmp_path, capsys):
    (tmp_path / "suite").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "suite" / "linked").symlink_to(tmp_path / "other")
    (tmp_path / "suite" / "a.svg").symlink_to(tmp_path / "other" / "a.svg")
    for name in ("linked/a.svg", "a.svg"):
        (tmp_path / "suite" / "suite.toml").write_text(f"[[figure]]\nfile='{name}'\npicture='decay/curves'\n")
        assert main(["figure", "--suite", str(tmp_path / "suite" / "suite.toml")]) == 2
        assert "a link leads out of" in capsys.readouterr().err
    assert not list((tmp_path / "other").iterdir())
