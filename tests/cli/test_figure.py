"""Pictures as files: every picture of the app, in formats that open, without a browser."""

import csv
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from rope_viz.cli.main import main
from rope_viz.figures import theme
from rope_viz.models.catalog import model_specs
from rope_viz.pages import registry
from tests.example_models import HAVING

ROOT = Path(__file__).parents[2]

SMALL = ("--head-dim", "16", "--context", "512", "--target", "2k", "--scaling", "yarn")
PICTURES = [picture.address for picture in registry.pictures()]


def figure(path, name="frequencies/wavelengths", *arguments):
    return main(["figure", name, *(arguments or SMALL), "-o", str(path)])


def rows(path):
    text = path.read_text(encoding="utf-8").splitlines()
    return list(csv.reader(line for line in text if not line.startswith("#")))


@pytest.mark.parametrize("name", PICTURES)
def test_every_picture_of_the_app_is_written_as_data(tmp_path, name):
    path = tmp_path / "plot.json"
    asked = (HAVING[name],) if name in HAVING else ()
    assert figure(path, name, *asked) == 0
    made = json.loads(path.read_text(encoding="utf-8"))
    assert made["spec"]["head_dim"] == (128 if asked else 16)
    assert {"data", "layout", "title", "sentence"} <= made.keys()


def test_the_list_names_every_picture_and_what_it_shows(capsys):
    assert main(["figure", "--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == PICTURES
    assert all(line.endswith(".") for line in lines)


def test_figure_holds_the_numbers_of_the_model(tmp_path):
    path = tmp_path / "plot.csv"
    figure(path, "frequencies/wavelengths", "llama-3.1-8b")
    spec = model_specs("llama-3.1-8b")[""]
    head, *body = rows(path)
    assert head == ["pair i", "plain", "scaled"]
    table = np.array(body, dtype=float)
    np.testing.assert_allclose(table[:, 1], 2 * np.pi / spec.plain_inv_freq, rtol=1e-15)
    np.testing.assert_allclose(table[:, 2], 2 * np.pi / spec.inv_freq(spec.target), rtol=1e-15)


def test_runtimes_picture_uses_the_config_itself(tmp_path):
    path = tmp_path / "plot.csv"
    figure(path, "runtimes/curves", "kimi-k2-instruct")
    head, *body = rows(path)
    assert head == ["pair i", "transformers 5.24.0", "llama.cpp 0c1e57098"]
    assert min(float(row[2]) for row in body) == pytest.approx(1 / 8.93, rel=1e-3)


def test_config_file_is_used_unchanged(tmp_path):
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"model_type": "llama", "head_dim": 64, "max_position_embeddings": 4096}))
    path = tmp_path / "plot.json"
    assert figure(path, "runtimes/matrix", str(config)) == 0
    assert json.loads(path.read_text(encoding="utf-8"))["sentence"] == "The config of llama, unchanged."


def test_page_choices_are_flags_by_name_and_key(tmp_path):
    short, long, other = (tmp_path / f"{name}.csv" for name in ("short", "long", "other"))
    assert figure(short, "decay/curves", "qwen3-8b", "--show", "bound", "--length", "4k", "--log", "no") == 0
    keys = ("--decay.show", "bound", "--decay.length", "4096", "--decay.log", "no")
    assert figure(long, "decay/curves", "qwen3-8b", *keys) == 0
    assert figure(other, "decay/curves", "qwen3-8b") == 0
    assert short.read_bytes() == long.read_bytes() != other.read_bytes()
    assert 4000 < float(rows(short)[-1][0]) < 4096


def test_flag_shared_with_the_model_retains_its_meaning(tmp_path):
    path = tmp_path / "plot.json"
    arguments = ("llama-2-7b", "--target", "8k", "--extend.target", "64k")
    assert figure(path, "extend/options", *arguments) == 0
    made = json.loads(path.read_text(encoding="utf-8"))
    assert made["spec"]["target"] == 8192
    assert "64k" in made["sentence"]


def test_vectors_are_read_from_a_file_or_typed(tmp_path):
    vectors = tmp_path / "vectors.npz"
    np.savez(vectors, q=np.ones(16), k=np.arange(16.0))
    path = tmp_path / "plot.csv"
    assert figure(path, "decay/curves", *SMALL, "--show", "own", "--source", "file", "--file", str(vectors)) == 0
    drawn = rows(path)
    column = drawn[0].index("YaRN")
    # At distance 0 nothing is turned; the attention factor multiplies what rotates, which the figure leaves out.
    assert float(drawn[1][column]) == pytest.approx(np.arange(16.0).sum(), rel=0.2)
    text = ",".join(["1"] * 16)
    assert figure(path, "rotation/rotated", *SMALL, "--x", text, "--position", "1") == 0
    assert [float(row[1]) for row in rows(path)[1:]] == [1.0] * 16


def test_the_help_of_a_picture_names_its_flags(capsys):
    with pytest.raises(SystemExit) as left:
        main(["figure", "scaling/comparison", "--help"])
    assert left.value.code == 0
    out = capsys.readouterr().out
    assert "--with" in out
    assert "ratio, wavelength, ramp, paper" in out


def test_html_is_self_contained_and_cannot_upload(tmp_path):
    path = tmp_path / "plot.html"
    assert figure(path) == 0
    page = path.read_text(encoding="utf-8")
    assert "<title>Wavelength of every pair" in page
    assert '"showSendToCloud":false' in page
    assert "<script src=" not in page
    assert 'src="http' not in page


def test_dark_theme_matches_the_page(tmp_path):
    light, dark = tmp_path / "light.html", tmp_path / "dark.html"
    figure(light)
    assert figure(dark, "frequencies/wavelengths", *SMALL, "--theme", "dark") == 0
    assert '"paper_bgcolor": "#FFFFFF"' in light.read_text(encoding="utf-8")
    assert f'"paper_bgcolor": "{theme.DARK["#FFFFFF"]}"' in dark.read_text(encoding="utf-8")


def test_style_flags_change_the_look_of_a_file(tmp_path):
    path = tmp_path / "plot.svg"
    arguments = ("--preset", "one-column", "--font", "serif", "--legend", "legend", "--label", "plain=before")
    assert figure(path, "frequencies/wavelengths", *SMALL, *arguments) == 0
    text = path.read_text(encoding="utf-8")
    assert 'width="240.94' in text
    assert "<!-- before -->" in text
    assert "<!-- plain -->" not in text


@pytest.mark.parametrize("name", ["scaling/comparison", "frequencies/heatmap", "rotation/turning", "scaling/methods"])
def test_a_saved_json_draws_the_same_files_again(tmp_path, name):
    saved, one, other = tmp_path / "spec.json", tmp_path / "one.svg", tmp_path / "other.svg"
    look = ("--width", "120mm", "--theme", "dark")
    assert figure(saved, name, *SMALL, *look) == 0
    assert figure(one, name, *SMALL, *look) == 0
    assert main(["figure", str(saved), "-o", str(other)]) == 0
    drawn, again = (path.read_text(encoding="utf-8").split("</metadata>")[1] for path in (one, other))
    assert drawn == again
    assert main(["figure", str(saved), "--theme", "light", "-o", str(other)]) == 0
    assert other.read_text(encoding="utf-8").split("</metadata>")[1] != drawn


def test_foreign_json_gives_a_one_line_error(tmp_path, capsys):
    (tmp_path / "x.json").write_text('{"model_type": "llama"}')
    assert main(["figure", str(tmp_path / "x.json"), "-o", str(tmp_path / "y.svg")]) == 2
    assert "there is no figure in this JSON" in capsys.readouterr().err


@pytest.mark.parametrize(("kind", "start"), [("svg", b"<?xml"), ("pdf", b"%PDF"), ("png", b"\x89PNG")])
@pytest.mark.parametrize("name", ["frequencies/heatmap", "rotation/turning", "scaling/methods"])
def test_every_kind_of_picture_is_drawn_without_a_browser(tmp_path, name, kind, start):
    path = tmp_path / f"plot.{kind}"
    assert figure(path, name, *SMALL, "--theme", "dark") == 0
    assert path.read_bytes().startswith(start)


def test_missing_matplotlib_is_named_in_one_line(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    path = tmp_path / "plot.svg"
    assert figure(path) == 2
    err = capsys.readouterr().err
    assert "pip install 'rope-viz[pictures]'" in err
    assert len(err.splitlines()) == 1
    assert not path.exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["wavelengths", "-o", "x.csv"], "There is no page 'wavelengths'"),
        (["scaling/nothing", "-o", "x.csv"], "There is no picture 'nothing'"),
        (["../x/y", "-o", "x.csv"], "There is no page '..'"),
        (["scaling/comparison"], "name a picture and a file"),
        (["-o", "x.csv"], "name a picture and a file"),
        (["decay/curves", "--show", "all", "-o", "x.csv"], "decay.show must be one of"),
        (["decay/curves", "--decay.length", "1e300", "-o", "x.csv"], "decay.length must be"),
        (["scaling/comparison", "--theme", "neon", "-o", "x.svg"], "theme must be"),
        (["scaling/comparison", "--width", "7", "-o", "x.svg"], "width must be"),
        (["scaling/comparison", "--pin", "99", "-o", "x.svg"], "pin must be"),
        (["scaling/comparison", "--view", "a,b", "-o", "x.svg"], "view must be"),
        (["scaling/comparison", "-o", "plot"], "must end in .json, .csv, .html, .svg, .png, .pdf"),
        (["scaling/comparison", "-o", "plot.svg.exe"], "must end in"),
        (["rotation/matrices", "--head-dim", "4096", "-o", "x.csv"], "too large to show"),
    ],
)
def test_impossible_figure_gives_a_one_line_error(tmp_path, monkeypatch, capsys, arguments, said):
    monkeypatch.chdir(tmp_path)
    assert main(["figure", *arguments]) == 2
    err = capsys.readouterr().err
    assert said in err
    assert len(err.splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_missing_folder_gives_a_one_line_error(tmp_path, capsys):
    assert figure(tmp_path / "nowhere" / "plot.csv") == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_address_draws_its_figure(tmp_path, capsys):
    """By its name and query, or whole as a browser copies it; what it does not say is as in the app."""
    plain, named, whole = (tmp_path / f"{name}.svg" for name in ("plain", "named", "whole"))
    assert main(["figure", "scaling/comparison", "llama-3.1-8b", "-o", str(plain)]) == 0
    assert main(["figure", "scaling/comparison?", "-o", str(named)]) == 0
    assert main(["figure", "https://host/base/rope-viz/picture/scaling/comparison.png", "-o", str(whole)]) == 0
    assert plain.read_bytes() == named.read_bytes() == whole.read_bytes()
    assert main(["figure", "scaling/comparison?width=85mm", "--width", "60mm", "-o", str(whole)]) == 0
    assert main(["figure", "scaling/comparison", "llama-3.1-8b", "--width", "60mm", "-o", str(plain)]) == 0
    assert plain.read_bytes() == whole.read_bytes()
    assert main(["figure", "scaling/comparison?model=qwen3-8b", "--base", "5e5", "-o", str(whole)]) == 2
    assert "put base into the address" in capsys.readouterr().err


def test_refusals_are_printed_without_markup(tmp_path, capsys):
    path = tmp_path / "config.json"
    sizes = {"hidden_size": 64, "num_attention_heads": 2, "max_position_embeddings": 4096}
    path.write_text(json.dumps({"model_type": "my_own", **sizes}))
    assert figure(tmp_path / "plot.json", "extend/memory", str(path)) == 2
    said = capsys.readouterr().err
    assert "num_hidden_layers" in said, said


def test_pictures_are_drawn_without_docstrings(tmp_path):
    """`python -OO` drops them."""
    command = [sys.executable, "-OO", "-m", "rope_viz", "figure"]
    listed = subprocess.run([*command, "--list"], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert (listed.returncode, listed.stderr) == (0, "")
    assert "frequencies/pairs" in listed.stdout
    out = tmp_path / "a.csv"
    drawn = subprocess.run([*command, "frequencies/pairs", "-o", out], cwd=ROOT, capture_output=True, timeout=120)
    assert (drawn.returncode, drawn.stderr) == (0, b"")
    assert out.read_text().count("\n") > 10


def test_lines_can_be_hidden_and_coloured_and_axes_named(tmp_path):
    out = tmp_path / "plot.svg"
    flags = ["--hide", "plain", "--colour", "Llama 3=#123456", "--ytitle", "our score"]
    assert main(["figure", "decay/curves", "llama-3.1-8b", "-o", str(out), *flags]) == 0
    drawn = out.read_text(encoding="utf-8")
    assert "<!-- plain -->" not in drawn
    assert "<!-- our score -->" in drawn
    assert "#123456" in drawn
