"""A file names the models that it shows, and holds nothing beyond its address."""

import dataclasses
import json

import pytest

from rope_viz.models import spec_url
from rope_viz.models.spec_url import Subject
from rope_viz.pages import registry
from rope_viz.picture import export, wire_format
from rope_viz.picture.picture_request import PictureRequest
from rope_viz.reports import draw, report
from tests.example_models import example_model

PICTURES = registry.pictures()
AXES = [picture for picture in PICTURES if picture.page == "axes"]
each_of_axes = pytest.mark.parametrize("picture", AXES, ids=[picture.name for picture in AXES])


def of(model, **more):
    return PictureRequest(Subject(spec_url.model_spec(model), model, spec_url.main_layer_of(model)), **more)


def remarks(content):
    return dict(line[2:].split(": ", 1) for line in content.decode().splitlines() if line.startswith("# "))


@each_of_axes
def test_picture_of_a_model_other_than_the_sidebars_names_it(picture):
    request = of("llama-2-7b")
    drawn = picture(request)
    assert "Qwen2-VL 7B" in drawn.title
    assert "llama" not in wire_format.file(picture, request)
    assert "qwen2-vl-7b" in wire_format.file(picture, request)
    said = remarks(export.render(picture, request, "csv"))
    assert said["models"].startswith("Qwen2-VL 7B")
    made = export.render(picture, request, "json")
    assert json.loads(made)["models"] == said["models"]
    assert remarks(draw.redraw_saved(made, "csv", {})) == said


@each_of_axes
def test_picture_of_the_sidebars_model_names_it(picture):
    request = of("qwen3.5-9b")
    assert "qwen3.5-9b" in wire_format.file(picture, request)
    assert "Qwen3.5 9B" in picture(request).title
    assert remarks(export.render(picture, request, "csv"))["spec"].startswith('{"model": "qwen3.5-9b"')


def test_report_names_the_model_of_a_picture_if_it_differs(monkeypatch):
    monkeypatch.setattr(registry, "pictures", lambda: AXES)
    text = report.to_markdown(of("llama-2-7b"), "files")[0].decode()
    axes = text.split("## Axes")[1].split("\n## ")[0]
    pictures = axes.split("### ")[1:]
    assert len(pictures) == len(AXES)
    assert all("Qwen2-VL 7B" in part for part in pictures)


def test_report_uses_the_final_sentence_of_partial_pictures(monkeypatch):
    request = of("qwen3-8b-yarn")
    coming = [picture for picture in PICTURES if picture.parts(request) > 1]
    assert coming
    monkeypatch.setattr(registry, "pictures", lambda: coming)
    for part in report.parts(request):
        assert part.sentence == part.picture(part.picture.finished(request)).sentence != part.picture(request).sentence


@pytest.mark.parametrize("picture", PICTURES, ids=[picture.address for picture in PICTURES])
def test_equal_keys_give_equal_content(picture):
    """The first who asks decides what is kept for all: nothing may be in it that the key does not hold."""
    request = of(example_model(picture, "qwen3-8b-yarn"))
    more = {} if picture.pin else {"pin": 7}
    if not picture.zooms:
        more["view"] = (1.0, 5.0)
    other = dataclasses.replace(request, **more)
    assert picture.cache_key(request) == picture.cache_key(other)
    for form in ("json", "csv"):
        assert export.render(picture, request, form) == export.render(picture, other, form)
