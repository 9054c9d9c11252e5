"""The JSON of a picture holds everything to redraw it, and the same numbers as its CSV."""

import io
import json
from urllib.parse import parse_qsl

import numpy as np
import pytest

from rope_viz.cli.figure import addressed, query_of
from rope_viz.figures.files import Style
from rope_viz.models import spec_url
from rope_viz.models.read_upload import read_upload
from rope_viz.models.spec_url import Subject
from rope_viz.own_files import blob_store, configs
from rope_viz.pages import registry
from rope_viz.picture import ROUTE, export, read_address
from rope_viz.picture.choices import StoredValue
from rope_viz.picture.outputs import Clocks
from rope_viz.picture.picture_request import PictureRequest
from rope_viz.reports import draw
from rope_viz.ui.components.scripts import PREFIX
from tests.configs import LONGROPE
from tests.example_models import example_model

PICTURES = registry.pictures()
each_picture = pytest.mark.parametrize("picture", PICTURES, ids=[picture.address for picture in PICTURES])
OWN = read_upload(json.dumps(LONGROPE))


def of(picture, **more):
    model = example_model(picture, "qwen3-8b-yarn")
    request = PictureRequest(Subject(spec_url.model_spec(model), model, spec_url.main_layer_of(model)), **more)
    return picture.finished(request)


def own(picture, **more):
    request = PictureRequest(Subject(OWN.specs[""], own=OWN), **more)
    return picture.finished(request)


def drawn(picture, request, form, **look):
    return export.render(picture, request, form, Style.read(look))


def body(svg):
    return svg.decode().split("</metadata>")[1]


@pytest.mark.parametrize(
    ("picture", "zoomed"),
    [(picture, zoomed) for picture in registry.pictures() for zoomed in (False, True)[: 1 + picture.zooms]],
    ids=lambda each: getattr(each, "address", "zoomed" if each is True else "whole"),
)
def test_csv_of_saved_json_equals_the_direct_csv(picture, zoomed):
    request = of(picture, view=(0.5, 2.5) if zoomed else None, pin=3)
    made = drawn(picture, request, "json")
    assert draw.redraw_saved(made, "csv", {}).decode() == drawn(picture, request, "csv").decode()
    assert draw.redraw_saved(draw.redraw_saved(made, "json", {}), "csv", {}) == drawn(picture, request, "csv")


@each_picture
def test_pandas_reads_its_csv_past_the_remarks(picture):
    pandas = pytest.importorskip("pandas")
    text = drawn(picture, of(picture), "csv").decode()
    found = pandas.read_csv(io.StringIO(text), comment="#")
    header, *rows = (line for line in text.splitlines() if not line.startswith("# "))
    assert header
    assert len(found) == len(rows)
    assert len(found.columns) >= 1


@each_picture
def test_json_of_a_user_config_redraws_that_config(picture):
    request = own(picture)
    if refusal := picture.refuses(request):
        assert refusal.endswith("."), "nothing is drawn of this config, and a sentence says why"
        return
    made = drawn(picture, request, "json")
    for form in ("csv", "svg"):
        direct, again = drawn(picture, request, form), draw.redraw_saved(made, form, {})
        if form == "svg":
            direct, again = body(direct), body(again)
        assert again == direct
    assert (json.loads(made).get("config") == OWN.config) == picture.config


@pytest.mark.parametrize("address", ["runtimes/matrix", "scaling/methods", "axes/clocks", "rotation/turning"])
def test_json_of_an_upload_is_redrawn_without_the_server(address, monkeypatch):
    """The address in it names a content that only that server keeps."""
    picture = registry.picture(*address.split("/"))
    name = blob_store.STORE.keep(blob_store.salt() + configs.upload_bytes(OWN))
    query = spec_url.write_query(Subject(OWN.specs[""])) | {"own": name}
    request = read_address.read_request(registry.page(picture.page), query)
    made, direct = (
        drawn(picture, request, "json"),
        {form: drawn(picture, request, form) for form in ("csv", "svg", "html")},
    )
    assert ("own=" in json.loads(made)["address"]) == picture.config
    monkeypatch.setattr(blob_store, "STORE", blob_store.Store())
    assert draw.redraw_saved(made, "csv", {}) == direct["csv"]
    assert body(draw.redraw_saved(made, "svg", {})) == body(direct["svg"])
    if issubclass(picture.kind, Clocks):
        assert draw.redraw_saved(made, "html", {}) == direct["html"]


@pytest.mark.parametrize("address", [picture.address for picture in PICTURES if issubclass(picture.kind, Clocks)])
def test_incomplete_clocks_json_is_refused(address):
    picture = registry.picture(*address.split("/"))
    made = json.loads(drawn(picture, own(picture), "json"))
    for missing in ({"choices", "address"}, {"spec"}):
        less = json.dumps({key: value for key, value in made.items() if key not in missing}).encode()
        with pytest.raises(ValueError, match="does not hold all the data"):
            draw.redraw_saved(less, "svg", {})
    for key, wrong in (("spec", {"model": "none"}), ("spec", 3), ("choices", []), ("config", 5)):
        with pytest.raises(ValueError, match="file"):
            draw.redraw_saved(json.dumps(made | {key: wrong}).encode(), "svg", {})


def test_old_clocks_json_is_redrawn_from_its_address():
    picture = registry.picture("rotation", "turning")
    made = json.loads(drawn(picture, of(picture), "json"))
    del made["choices"]
    assert body(draw.redraw_saved(json.dumps(made).encode(), "svg", {})) == body(drawn(picture, of(picture), "svg"))


def test_infinite_and_missing_numbers_survive_json():
    from rope_viz.figures.files.redraw_json import columns_of
    from rope_viz.figures.files.redraw_json import columns_to_json as columns_kept

    columns = {"a": np.array([1.0, np.nan, np.inf, -np.inf]), "b": [1, None, 2, True], "c": ["x", None, "inf", "#"]}
    text = json.dumps(columns_kept(columns), allow_nan=False)
    assert columns_of(json.loads(text)) == {"a": [1.0, None, np.inf, -np.inf], "b": columns["b"], "c": columns["c"]}


@each_picture
def test_file_holds_the_address_of_its_picture(picture):
    request = of(picture, view=(0.5, 2.5), pin=3)
    look = {"width": "120mm", "theme": "dark"}
    said = json.loads(drawn(picture, request, "json", **look))
    address = said["figure"]
    assert address.startswith(f"{PREFIX}/picture/{picture.address}?")
    assert f"{PREFIX}/picture" == ROUTE
    assert said["address"].startswith("/" if picture.page == "home" else f"/{picture.page}?")
    query = query_of(address)
    style = {key: query.pop(key) for key in look}
    assert style == look
    again = read_address.read_request(registry.page(picture.page), query)
    assert picture.cache_key(again) == picture.cache_key(request)
    assert addressed(address) == picture.address


def test_styled_figure_holds_the_address_of_its_style():
    picture = registry.picture("scaling", "comparison")
    made = drawn(picture, of(picture), "json", theme="dark", title="yes")
    for form in ("json", "csv", "svg", "html"):
        text = draw.redraw_saved(made, form, {"theme": "light", "width": "90mm"}).decode()
        assert "width=90mm" in text, form
        assert "theme=dark" not in text, form
    address = json.loads(draw.redraw_saved(made, "json", {"theme": "light"}))["figure"]
    assert dict(parse_qsl(address.partition("?")[2])) == {"model": "qwen3-8b-yarn", "title": "yes"}


def test_picture_of_an_upload_has_no_address():
    picture = registry.picture("decay", "curves")
    file = next(choice for choice in registry.page("decay").choices if choice.key == "decay.file")
    out = io.BytesIO()
    np.savez(out, q=np.ones(128), k=np.ones(128))
    vectors = file.decode(b"vectors.npz\0" + out.getvalue())
    request = of(picture, given={"decay.show": "own", "decay.source": "file", "decay.file": StoredValue("", vectors)})
    said = json.loads(drawn(picture, request, "json"))
    assert said["address"] == ""
    assert "figure" not in said
    assert draw.redraw_saved(json.dumps(said).encode(), "csv", {}) == drawn(picture, request, "csv")


@pytest.mark.parametrize("address", ["scaling/methods", "rotation/turning", "scaling/comparison"])
def test_html_of_every_picture_names_its_content(address):
    picture = registry.picture(*address.split("/"))
    page = drawn(picture, of(picture), "html").decode()
    assert f'<meta name="rope-viz:figure" content="{PREFIX}/picture/{address}?model=qwen3-8b-yarn">' in page
