"""`rope-viz figure` on a saved JSON, an address, and what argparse would take for a flag."""

import io
import json
from urllib.parse import urlencode

import pytest

from rope_viz.cli.main import join_negative_values, main
from rope_viz.models import spec_url
from rope_viz.models.model_config import from_config
from rope_viz.models.read_upload import read_upload
from rope_viz.models.spec_url import Subject
from rope_viz.pages import registry
from rope_viz.picture import write_address
from rope_viz.picture.picture_request import PictureRequest
from tests.configs import LONGROPE, QWEN3_8B


def figure(*arguments):
    return main(["figure", *map(str, arguments)])


def table(path):
    return [line for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("# ")]


@pytest.mark.parametrize(
    "name", ["frequencies/pairs", "scaling/methods", "extend/ways", "runtimes/matrix", "axes/costs", "axes/clocks"]
)
def test_saved_table_of_a_config_file_is_redrawn(tmp_path, name):
    config, saved, direct, again = (tmp_path / each for each in ("longrope.json", "p.json", "direct.csv", "again.csv"))
    config.write_text(json.dumps(LONGROPE))
    assert figure(name, config, "-o", saved) == 0
    assert figure(name, config, "-o", direct) == 0
    assert figure(saved, "-o", again) == 0
    assert again.read_bytes() == direct.read_bytes()
    assert json.loads(saved.read_text(encoding="utf-8"))["spec"]["head_dim"] == 96
    assert b'"head_dim": 96' in again.read_bytes()


@pytest.mark.parametrize(
    ("flags", "key"),
    [
        (["qwen3-8b"], "model"),
        (["--scaling", "linear"], "scaling"),
        (["--view", "3,9"], "view"),
        (["--pin", "3"], "pin"),
        (["--base", "5e5"], "base"),
        (["--layer", "x"], "layer"),
        (["--no-truncate"], "truncate"),
        (["--short-factor", "1,2"], "short_factor"),
    ],
)
def test_only_the_look_of_a_saved_file_can_change(tmp_path, capsys, flags, key):
    saved, other = tmp_path / "saved.json", tmp_path / "x.svg"
    assert figure("scaling/comparison", "-o", saved) == 0
    assert figure(saved, *flags, "-o", other) == 2
    assert f"already contains {key}: omit it" in capsys.readouterr().err
    assert not other.exists()
    assert figure(saved, "--theme", "dark", "-o", other) == 0


@pytest.mark.parametrize(
    ("made", "said"),
    [
        ({"data": [{"type": "scatter"}], "layout": {}}, "neither x nor y"),
        ({"data": [], "layout": {}}, "its data are empty"),
        ({"data": [], "layout": {"meta": 5}}, "its data are empty"),
        ({"data": [7], "layout": {}}, "trace 1 of this figure must be an object"),
        ({"data": [{"type": "scatter", "y": [1], "line": {"color": "url(#x)"}}], "layout": {}}, "line.color must not"),
        ({"data": [{"type": "scatter", "y": [1]}], "layout": {"width": "x"}}, "layout.width must not be 'x'"),
        ({"data": [{"type": "scatter", "y": [[1], [1, 2]]}], "layout": {}}, "y of trace 1"),
        ({"data": [{"type": "scatter", "y": {"bdata": "?"}}], "layout": {}}, "y of trace 1"),
        ({"data": [{"type": "heatmap", "z": [[1, 2], [3]]}], "layout": {}}, "z of trace 1"),
        ({"data": [{"type": "heatmap", "z": [1, 2]}], "layout": {}}, "rows of numbers"),
        ({"data": [{"type": "heatmap", "z": [[1, 2]], "x": [1]}], "layout": {}}, "x of trace 1"),
        ({"data": [{"type": "heatmap", "z": [[1, 2]], "colorscale": "Nix"}], "layout": {}}, "no colorscale 'Nix'"),
        ({"data": [{"type": "table"}], "layout": {}}, "its table is empty"),
        ({"data": [{"type": "table", "header": {"values": ["a"]}}], "layout": {}}, "list of cells for every name"),
        ({"data": [{"type": "table"}, {"type": "scatter", "y": [1]}], "layout": {}}, "together with other traces"),
        ({"data": [{"type": "scatter", "y": [1]}], "layout": {}, "table": {"a": [[1]]}}, "the column 'a'"),
        ({"data": [{"type": "scatter", "y": [1]}], "layout": {}, "style": 5}, "style in this JSON"),
        ({"data": [{"y": [1]}], "layout": {"annotations": [{"text": "a", "y": 1}]}}, "x of annotation 1"),
        ({"data": [{"y": [1]}], "layout": {"shapes": [{"x0": 1, "x1": 2, "y0": 1}]}}, "y1 of shape 1"),
    ],
)
def test_undrawable_file_error_names_the_problem(tmp_path, capsys, made, said):
    path = tmp_path / "odd.json"
    path.write_text(json.dumps(made))
    for form in ("svg", "csv", "html", "json"):
        assert figure(path, "-o", tmp_path / f"out.{form}") == 2
        err = capsys.readouterr().err
        assert said in err
        assert len(err.splitlines()) == 1


@pytest.mark.parametrize(
    ("made", "refused"),
    [
        ({"data": [{"type": "pie", "values": [1, 2]}], "layout": {}}, {"svg", "csv"}),
        ({"data": [{"type": "scatter", "y": [1, 2]}], "layout": {"xaxis": {"range": ["a", "b"]}}}, {"svg"}),
        ({"data": [{"type": "bar", "y": [1, 2], "width": [1, 2]}], "layout": {}}, {"svg"}),
        ({"data": [{"y": [1]}], "layout": {"annotations": [{"text": "a", "x": "b", "y": 1}]}}, {"svg"}),
        ({"data": [{"type": "scatter", "y": [1, 2, 3]}], "layout": {"meta": 5}}, set()),
        ({"data": [{"y": [1, 2], "x": ["a", "b", "c"], "mode": "text", "meta": "x"}], "layout": {}}, set()),
        ({"data": [{"type": "heatmap", "z": [[1, 2], [3, 4]], "colorscale": "Viridis"}], "layout": {}}, set()),
        ({"data": [{"y": ["a", "b"], "xaxis": "x2", "yaxis": "y2"}], "layout": {}}, set()),
        ({"data": [{"type": "table", "header": {"values": ["a"]}, "cells": {"values": [[1]]}}], "layout": {}}, set()),
    ],
)
def test_foreign_figure_is_drawn_where_possible(tmp_path, capsys, made, refused):
    path = tmp_path / "odd.json"
    path.write_text(json.dumps(made))
    for form in ("svg", "csv", "html", "json"):
        assert figure(path, "-o", tmp_path / f"out.{form}") == (2 if form in refused else 0), form
        err = capsys.readouterr().err
        assert len(err.splitlines()) == (form in refused)
        assert "json" in err or form not in refused or "range of xaxis" in err


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["scaling/comparison?model=qwen3-8b&model=llama-2-7b"], "contains 'model' twice"),
        (["scaling/comparison", "--label", "YaRN=a", "--label", "YaRN=b"], "the line 'YaRN' twice"),
        (
            ["https://h/scaling?model=qwen3-8b&axes-scaling-comparison=xmin:1"],
            "'scaling/comparison?model=qwen3-8b'; it",
        ),
        (["https://h/rope/decay?model=qwen3-8b"], "as 'decay/curves?model=qwen3-8b'; it has curves, pairs"),
        (
            ["https://h/?model=qwen3-8b"],
            "this is the page Home: name one of its pictures, such as 'home/turning?model=qwen3-8b'",
        ),
        (["/decay?model=qwen3-8b"], "this is the page Decay"),
        (["decay"], "this is the page Decay"),
        (["http://[/x"], "not an address"),
        (["https://h/nothing?model=qwen3-8b"], "There is no page 'nothing'"),
    ],
)
def test_address_without_a_picture_gives_a_one_line_error(tmp_path, capsys, asked, said):
    assert figure(*asked, "-o", tmp_path / "x.csv") == 2
    err = capsys.readouterr().err
    assert said in err
    assert len(err.splitlines()) == 1


def test_picture_address_is_read_in_every_spelling(tmp_path):
    plain = tmp_path / "plain.csv"
    assert figure("scaling/comparison", "qwen3-8b", "-o", plain) == 0
    for place, start in enumerate(
        [
            "scaling/comparison",
            "/scaling/comparison",
            "scaling/comparison.svg",
            "scaling/comparison.json",
            "/rope-viz/picture/scaling/comparison",
            "/rope-viz/picture/scaling/comparison.packed",
            "https://host/base/rope-viz/picture/scaling/comparison.json",
            "https://host/base/scaling/comparison",
        ]
    ):
        path = tmp_path / f"{place}.csv"
        assert figure(f"{start}?model=qwen3-8b&v=abcdef", "-o", path) == 0, start
        assert path.read_bytes() == plain.read_bytes(), start
    assert figure("https://host/rope-viz/picture/scaling/comparison.json", "-o", tmp_path / "usual.csv") == 0


def test_the_address_in_a_file_draws_that_file_again(tmp_path):
    one, other = tmp_path / "one.csv", tmp_path / "other.csv"
    look = ("--view", "0.5,2.5", "--label", "YaRN=#1", "--show", "mean")
    assert figure("decay/curves", "qwen3-8b-yarn", *look, "-o", one) == 0
    said = dict(line[2:].split(": ", 1) for line in one.read_text(encoding="utf-8").splitlines() if line[:2] == "# ")
    assert figure(said["figure"], "-o", other) == 0
    assert one.read_bytes() == other.read_bytes()


@pytest.mark.parametrize(
    ("given", "joins"),
    [
        (["figure", "--ymin", "-1e-3"], ["figure", "--ymin=-1e-3"]),
        (["--view", "-5,3", "-o", "x"], ["--view=-5,3", "-o", "x"]),
        (["--ymin", "-.5", "--ymax", "-5"], ["--ymin=-.5", "--ymax=-5"]),
        (["--base", "-1k", "--xmin=-3", "-4"], ["--base=-1k", "--xmin=-3", "-4"]),
        (["--ymin", "-inf"], ["--ymin=-inf"]),
        (["--list", "-o", "x.svg"], ["--list", "-o", "x.svg"]),
        (["--", "--ymin", "-3"], ["--", "--ymin", "-3"]),
        (["-o", "-5"], ["-o", "-5"]),
    ],
)
def test_a_negative_value_belongs_to_the_flag_before_it(given, joins):
    assert join_negative_values(given) == joins


def test_negative_numbers_follow_their_flags(tmp_path, capsys):
    one, other = tmp_path / "one.svg", tmp_path / "other.svg"
    assert figure("decay/curves", "--ymin", "-1e-3", "--ymax", "1", "--view", "-5,3", "-o", one) == 0
    assert figure("decay/curves", "--ymin=-0.001", "--ymax=1", "--view=-5,3", "-o", other) == 0
    assert one.read_bytes() == other.read_bytes()
    with pytest.raises(SystemExit):
        main(["table", "qwen3-8b", "--base", "-1e3"])
    assert "'-1e3' is not a number" in capsys.readouterr().err


def test_a_label_with_a_remark_sign_is_read_by_pandas(tmp_path):
    pandas = pytest.importorskip("pandas")
    path = tmp_path / "plot.csv"
    assert figure("scaling/comparison", "llama-2-7b", "--target", "16k", "--label", "NTK-aware=#3", "-o", path) == 0
    found = pandas.read_csv(io.StringIO(path.read_text(encoding="utf-8")), comment="#")
    assert "#3" in found.columns
    assert len(found) == 64
    assert figure("rotation/pairings", "llama-2-7b", "-o", path) == 0
    text = path.read_text(encoding="utf-8")
    found = pandas.read_csv(io.StringIO(text), comment="#")
    assert len(found) == len(table(path)) - 1


@pytest.mark.parametrize(
    ("name", "first"), [("kernels/ways", "way"), ("kernels/speeds", "way"), ("kernels/agreement", "pairing")]
)
def test_missing_measurement_gives_an_empty_table(tmp_path, name, first):
    path, saved = tmp_path / "plot.csv", tmp_path / "plot.json"
    assert figure(name, "-o", path) == 0
    (header,) = table(path)
    assert header.split(",")[0] == first
    assert figure(name, "-o", saved) == 0
    again = path.read_bytes()
    assert figure(saved, "-o", path) == 0
    assert path.read_bytes() == again


@pytest.mark.parametrize("name", ["frequencies/wavelengths", "runtimes/matrix", "extend/ways"])
def test_address_of_a_user_config_is_drawn_with_the_config_file(tmp_path, capsys, name):
    config, by_name, by_address = tmp_path / "config.json", tmp_path / "a.csv", tmp_path / "b.csv"
    config.write_text(json.dumps(LONGROPE | {"model_type": "llama", "rope_scaling": {"type": "linear", "factor": 4.0}}))
    assert figure(name, config, "-o", by_name) == 0
    (spec,) = from_config(json.loads(config.read_text())).values()
    query = urlencode(spec_url.write_query(Subject(spec)) | {"own": "A" * 43})
    assert figure(f"{name}?{query}", "-o", by_address) == 2
    assert "Name the file after it" in capsys.readouterr().err
    assert figure(f"{name}?{query}", config, "-o", by_address) == 0
    assert table(by_address) == table(by_name)
    assert figure(f"{name}?model=custom&spec={'A' * 43}", config, "-o", by_address) == 2
    assert "Save the picture as JSON" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["frequencies/wavelengths", "runtimes/matrix", "extend/ways", "scaling/comparison"])
def test_picture_link_with_a_config_is_drawn_alike(tmp_path, name):
    """The link itself, the command copied from the page, and the command with the file give the same numbers."""
    files = [tmp_path / f"{index}.csv" for index in range(3)]
    config = tmp_path / "config.json"
    config.write_text(json.dumps(QWEN3_8B))
    own = read_upload(config.read_text())
    picture = registry.picture(*name.split("/"))
    query = write_address.link_query(PictureRequest(Subject(own.specs[""], own=own)), picture)
    copied = {key: text for key, text in query.items() if key != "config"} | {"own": "file"}
    assert figure(name, config, "-o", files[0]) == 0
    assert figure(f"{name}?{urlencode(query)}", "-o", files[1]) == 0
    assert figure(f"{name}?{urlencode(copied)}", config, "-o", files[2]) == 0
    assert table(files[0]) == table(files[1]) == table(files[2])


def test_command_copied_from_a_changed_config_has_the_change(tmp_path):
    files = [tmp_path / f"{index}.csv" for index in range(2)]
    config = tmp_path / "config.json"
    config.write_text(json.dumps(QWEN3_8B))
    assert figure("scaling/methods", config, "--base", "20000", "-o", files[0]) == 0
    assert figure("scaling/methods?model=custom&base=20000&own=file", config, "-o", files[1]) == 0
    assert table(files[0]) == table(files[1])


def test_broken_config_in_a_picture_link_is_named(tmp_path, capsys):
    assert figure("scaling/comparison?model=custom&config=eNp", "-o", tmp_path / "a.csv") == 2
    assert "the config in this link is damaged or cut off" in capsys.readouterr().err
