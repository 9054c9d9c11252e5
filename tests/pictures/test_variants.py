"""A figure with pinned curves is the same from Python, by every form of its address, and from the command line."""

import json
from csv import reader
from urllib.parse import parse_qsl

import numpy as np
import pytest

from rope_viz.cli.main import main
from rope_viz.embedding.spectrum import wavelength
from rope_viz.models.catalog import model_specs
from rope_viz.pages import registry
from rope_viz.picture import read_address, write_address
from rope_viz.reports.draw import figure, redraw_saved

THREE = "decay/curves?base=1e6&variant1=base=5e5&variant2=base=1e4"
SHOWN = [each for each in registry.pictures() if each.variants]


def test_four_pages_show_pinned_curves():
    addresses = ["rotation/turning", "frequencies/wavelengths", "scaling/comparison", "decay/curves"]
    assert [each.address for each in SHOWN] == addresses


def test_python_and_command_line_make_the_same_bytes(tmp_path):
    variants = ["--variant", "base=5e5", "--variant", "base=1e4"]
    path = tmp_path / "three.svg"
    assert main(["figure", "decay/curves", "llama-3.1-8b", "--base", "1e6", *variants, "-o", str(path)]) == 0
    assert path.read_bytes() == figure(THREE)
    assert main(["figure", THREE, "-o", str(path)]) == 0
    assert path.read_bytes() == figure(THREE)


@pytest.mark.parametrize("picture", SHOWN, ids=lambda each: each.address)
def test_the_address_in_a_file_draws_the_file_again(picture):
    query = {"variant1": "base=1e4", "variant2": "model=qwen3-8b,scaling=yarn", "variant4": "dim=64", "base": "1e6"}
    page = registry.page(picture.page)
    request = read_address.read_request(page, query)
    written = write_address.query(request, picture)
    again = read_address.read_request(page, dict(parse_qsl("&".join(f"{key}={text}" for key, text in written.items()))))
    assert again.variants == request.variants
    saved = figure(f"{picture.address}?" + "&".join(f"{key}={text}" for key, text in query.items()), "json")
    own = figure(json.loads(saved)["figure"].replace("/rope-viz/picture/", ""), "json")
    assert own == saved
    assert b"head dimension 64" in redraw_saved(saved, "csv", {})


def test_curves_have_the_wavelengths_of_their_bases():
    csv = figure("frequencies/wavelengths?variant1=base=1e4&variant2=model=qwen3-8b", "csv").decode()
    names, *rows = reader(line for line in csv.splitlines() if not line.startswith("#"))
    columns = dict(zip(names, np.array(rows, dtype=float).T, strict=True))
    qwen = model_specs("qwen3-8b")[""]
    assert columns["Qwen3 8B"] == pytest.approx(2 * np.pi * qwen.base ** (np.arange(64) / 64), rel=1e-9)
    assert columns["Qwen3 8B"] == pytest.approx(wavelength(qwen.inv_freq()), rel=1e-12)


def test_a_fifth_variant_is_refused(capsys, tmp_path):
    variants = [word for number in range(5) for word in ("--variant", f"base={number + 1}e4")]
    assert main(["figure", "decay/curves", *variants, "-o", str(tmp_path / "a.svg")]) == 2
    assert "at most 4 variants, got 5" in capsys.readouterr().err


def test_a_picture_of_one_curve_refuses_variants(capsys, tmp_path):
    assert main(["figure", "scaling/methods", "--variant", "base=1e4", "-o", str(tmp_path / "a.svg")]) == 2
    assert "shows one curve" in capsys.readouterr().err


def test_a_config_file_is_a_variant_on_the_command_line(tmp_path):
    config = {"model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32, "rope_theta": 31337.0}
    (tmp_path / "own.json").write_text(json.dumps(config | {"max_position_embeddings": 4096}))
    path = tmp_path / "a.csv"
    variant = f"model={tmp_path / 'own.json'}"
    assert main(["figure", "frequencies/wavelengths", "qwen3-8b", "--variant", variant, "-o", str(path)]) == 0
    assert ",llama" in path.read_text()


def test_own_q_and_k_are_drawn_only_for_curves_of_their_size():
    query = {"decay.show": "own", "variant1": "base=1e4", "variant2": "dim=64", "decay.length": "64"}
    page = registry.page("decay")
    drawn = page.pictures["curves"](read_address.read_request(page, query))
    assert "head dimension 64" in drawn.sentence
    assert {trace.name for trace in drawn.fig.data} >= {"base 10,000"}


def test_compared_models_of_an_older_address_are_still_drawn():
    old = figure("decay/curves?decay.models=qwen3-8b,llama-2-7b")
    assert old == figure("decay/curves?variant1=model=qwen3-8b&variant2=model=llama-2-7b")
