"""Figures as files: the pages' own figures, in formats that open, without a browser."""

import csv
import importlib.util
import sys
from xml.etree import ElementTree

import numpy as np
import pytest

from rope_viz.cli.figure import FIGURES
from rope_viz.cli.main import main
from rope_viz.configs.catalog import model_specs
from rope_viz.figures import files, frequencies, theme

DRAWN = pytest.mark.skipif(importlib.util.find_spec("matplotlib") is None, reason="Matplotlib is not installed")
SMALL = ("--head-dim", "16", "--context", "512", "--target", "2k", "--scaling", "yarn")


def figure(path, name="wavelengths", *arguments):
    return main(["figure", name, *(arguments or SMALL), "-o", str(path)])


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_is_written_as_numbers(tmp_path, name):
    path = tmp_path / "plot.csv"
    assert figure(path, name) == 0
    rows = list(csv.reader(path.open(encoding="utf-8")))
    assert len(rows) > 1
    assert len({len(row) for row in rows}) == 1


def test_the_numbers_are_the_models(tmp_path):
    path = tmp_path / "plot.csv"
    figure(path, "wavelengths", "llama-3.1-8b")
    rows = list(csv.reader(path.open(encoding="utf-8")))
    spec = model_specs("llama-3.1-8b")[""]
    assert rows[0] == ["pair i", "plain", "scaled"]
    table = np.array(rows[1:], dtype=float)
    np.testing.assert_allclose(table[:, 1], 2 * np.pi / spec.plain_inv_freq, rtol=1e-15)
    np.testing.assert_allclose(table[:, 2], 2 * np.pi / spec.inv_freq(spec.target), rtol=1e-15)


def test_the_runtimes_figure_is_about_the_config_itself(tmp_path):
    path = tmp_path / "plot.csv"
    figure(path, "runtimes", "kimi-k2-instruct")
    rows = list(csv.reader(path.open(encoding="utf-8")))
    assert rows[0] == ["pair i", "transformers 5.23.0", "llama.cpp 0c1e57098"]
    assert min(float(row[2]) for row in rows[1:]) == pytest.approx(1 / 8.93, rel=1e-3)


def test_html_stands_alone_and_cannot_upload(tmp_path):
    path = tmp_path / "plot.html"
    assert figure(path) == 0
    page = path.read_text(encoding="utf-8")
    assert "<title>Wavelength of each pair" in page
    assert '"showSendToCloud": false' in page
    assert "<script src=" not in page
    assert 'src="http' not in page


def test_the_dark_theme_is_the_pages_own(tmp_path):
    light, dark = tmp_path / "light.html", tmp_path / "dark.html"
    figure(light)
    assert main(["figure", "wavelengths", *SMALL, "--theme", "dark", "-o", str(dark)]) == 0
    assert '"paper_bgcolor":"#FFFFFF"' in light.read_text(encoding="utf-8")
    assert f'"paper_bgcolor":"{theme.DARK["#FFFFFF"]}"' in dark.read_text(encoding="utf-8")


def test_both_themes_hold_the_same_numbers():
    fig = frequencies.heatmap(model_specs("gpt-oss-20b")[""], stop=64)
    assert files.to_csv(fig) == files.to_csv(theme.darkened(fig))


@DRAWN
@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_is_drawn_as_a_vector_picture(tmp_path, name):
    path = tmp_path / "plot.svg"
    assert figure(path, name) == 0
    root = ElementTree.parse(path).getroot()
    assert root.tag.endswith("svg")
    assert len(list(root.iter("{http://www.w3.org/2000/svg}path"))) > 10


@DRAWN
@pytest.mark.parametrize(("kind", "start"), [("pdf", b"%PDF"), ("png", b"\x89PNG")])
@pytest.mark.parametrize("name", ["wavelengths", "heatmap", "bases"])
def test_the_other_formats_open_too(tmp_path, name, kind, start):
    path = tmp_path / f"plot.{kind}"
    assert main(["figure", name, *SMALL, "--theme", "dark", "-o", str(path)]) == 0
    assert path.read_bytes().startswith(start)


@pytest.mark.parametrize("kind", ["svg", "pdf", "png"])
def test_without_matplotlib_one_line_says_what_to_install(tmp_path, capsys, monkeypatch, kind):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    path = tmp_path / f"plot.{kind}"
    assert figure(path) == 2
    err = capsys.readouterr().err
    assert "pip install matplotlib" in err
    assert len(err.splitlines()) == 1
    assert not path.exists()


@pytest.mark.parametrize("name", ["plot", "plot.jpg", "plot.svg.exe"])
def test_an_ending_that_is_no_format_is_one_line(tmp_path, capsys, name):
    assert figure(tmp_path / name) == 2
    assert "must end in .svg, .png, .pdf, .html, .csv" in capsys.readouterr().err


def test_a_folder_that_is_not_there_is_one_line(tmp_path, capsys):
    assert figure(tmp_path / "nowhere" / "plot.csv") == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
