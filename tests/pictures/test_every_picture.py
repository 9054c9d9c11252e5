"""Laws for every picture: it depends on its address only, fits its space, and all formats hold the same numbers."""

import csv
import json
import struct
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings, strategies

from rope_viz.embedding.scaling import METHODS
from rope_viz.embedding.spec import RopeSpec, knobs
from rope_viz.figures.files import Style
from rope_viz.figures.words import plain_cell
from rope_viz.models import spec_url
from rope_viz.models.catalog import catalog
from rope_viz.models.spec_url import Subject
from rope_viz.pages import registry
from rope_viz.picture import export, read_address, wire_format
from rope_viz.picture.choices import Number, Several, StoredChoice
from rope_viz.picture.outputs import Figure
from rope_viz.picture.page import Picture
from rope_viz.picture.picture_request import PictureRequest
from tests.example_models import example_model

PICTURES = registry.pictures()
each_picture = pytest.mark.parametrize("picture", PICTURES, ids=[picture.address for picture in PICTURES])
KNOBS = sorted(knobs(RopeSpec).keys() | spec_url.method_knobs().keys())
SHARES = strategies.floats(0.0, 1.0)
DTYPES = {"f8": np.float64, "f4": np.float32, "i4": np.int32, "i1": np.int8, "u1": np.uint8}


def of(model="qwen3-8b-yarn", **more):
    return PictureRequest(Subject(spec_url.model_spec(model), model, spec_url.main_layer_of(model)), **more)


def unpacked(content):
    """A message as the browser reads it."""
    (size,) = struct.unpack_from("<I", content)

    def array(value):
        if "$" not in value:
            return value
        dtype, offset, count, columns, *_ = value["$"]
        flat = np.frombuffer(content, DTYPES[dtype], count, 4 + size + offset)
        return flat.reshape(-1, columns) if columns else flat

    return json.loads(content[4 : 4 + size], object_hook=array)


def at_share(knob, share):
    """The value at this share of a slider's track."""
    value = knob.low * (knob.high / knob.low) ** share if knob.log else knob.low + share * (knob.high - knob.low)
    step = knob.step or 1
    return min(max(round(value / step) * step, knob.low), knob.high) if knob.integer else value


def variations(page):
    """Every option of every choice of a page, one at a time, as text."""
    for choice in page.choices:
        if isinstance(choice, StoredChoice):
            continue
        if isinstance(choice, Number):
            yield from ((choice, choice.text(at_share(choice.knob, share))) for share in (0.0, 0.3, 1.0))
        elif options := getattr(choice, "options", None):
            yield from ((choice, name) for name in options)
            if isinstance(choice, Several):
                yield choice, ""
        else:
            yield from ((choice, text) for text in ("yes", "no", "llama-2-7b", "one two one") if readable(choice, text))


def readable(choice, text):
    try:
        choice.parse(text)
    except ValueError:
        return False
    return True


@each_picture
def test_picture_depends_only_on_its_declared_inputs(picture):
    """Another pin, zoom or choice that is not in the key of a picture does not change a byte of it."""
    page, start = registry.page(picture.page), {"model": example_model(picture, "llama-3.2-1b")}
    resting = read_address.read_request(page, start)
    key, content = picture.cache_key(resting), export.render(picture, resting, "packed")
    changes = [("pin", "3"), ("view", "0.5,1.5")] + [(choice.key, text) for choice, text in variations(page)]
    tried = 0
    for name, text in changes:
        request = read_address.read_request(page, start | {name: text})
        if picture.cache_key(request) == key:
            tried += 1
            assert export.render(picture, request, "packed") == content, f"{name} = {text} changes {picture.address}"
    assert tried


class Recorder(PictureRequest):
    """A `PictureRequest` that knows which choices were looked at."""

    def __getitem__(self, choice):
        self.__dict__.setdefault("looked", set()).add(choice.key)
        return super().__getitem__(choice)


CHOICES = [choice for name in registry.PAGES for choice in registry.page(name).choices]


@pytest.mark.parametrize("choice", CHOICES, ids=[choice.key for choice in CHOICES])
def test_choice_reads_only_its_declared_inputs(choice):
    """The page asks for a picture again when one of these moves, and its address holds them."""
    page = registry.page(choice.key.partition(".")[0])
    known = Picture(page.name, lambda request: None, (choice,)).depends
    changes = [{}, *({other.key: text} for other, text in variations(page) if other.key in known)]
    for model in ("llama-3.2-1b", "qwen3.5-9b"):
        for change in changes:
            read = read_address.read_request(page, {"model": model, **change})
            request = Recorder(read.subject, given=read.given)
            request[choice], choice.default(request), choice.when(request)
            assert request.looked <= known, change


@each_picture
def test_every_option_fits_the_reserved_height(picture):
    page, asked = registry.page(picture.page), picture.depends
    for query in [{}, *({choice.key: text} for choice, text in variations(page) if choice.key in asked)]:
        request = read_address.read_request(page, {"model": example_model(picture, "qwen3-8b-yarn"), **query})
        drawn = picture(request)
        assert drawn.title
        if isinstance(drawn, Figure):
            narrow = (drawn.fig.layout.meta or {}).get("narrow", {}).get("height", drawn.fig.layout.height)
            assert picture.heights(request) == (drawn.fig.layout.height, narrow), query
            # What the browser gets is drawn without Plotly's checks, and would have passed them.
            asked = export.render(picture, request, "packed")
            assert lean(unpacked(asked)) == lean(unpacked(wire_format.packed(picture, request, drawn))), query


def lean(value):
    """Without what says nothing: empty lists and objects, and the type that every template names."""
    if isinstance(value, np.ndarray):
        return value.tobytes(), value.shape
    if isinstance(value, dict):
        kept = {name: lean(item) for name, item in value.items() if name != "template"}
        return {name: item for name, item in kept.items() if item not in ([], {})}
    return [lean(item) for item in value] if isinstance(value, list) else value


FOLLOWING = [picture for picture in PICTURES if not picture.still]


@pytest.mark.parametrize("picture", FOLLOWING, ids=[picture.address for picture in FOLLOWING])
def test_picture_changes_with_every_knob_it_uses(picture):
    model = example_model(picture, "qwen3-8b-yarn")
    page, resting = registry.page(picture.page), of(model)
    own = {choice.key: choice.knob for choice in page.choices if isinstance(choice, Number)}
    for key, knob in {**knobs(resting.spec), **knobs(resting.spec.scaling), **own}.items():
        if key not in own and getattr(resting.spec, key, getattr(resting.spec.scaling, key, None)) is None:
            continue
        for value in (at_share(knob, share) for share in (0.0, 1.0)):
            query = {"model": model, "knob": key, "value": repr(value), "coarse": "1"}
            if key == "rotary_dim" and value > resting.spec.head_dim:
                with pytest.raises(ValueError, match="rotary_dim"):
                    read_address.read_request(page, query)
            else:
                assert export.render(picture, read_address.read_request(page, query), "packed"), f"{key} = {value}"


@each_picture
@settings(max_examples=10, deadline=None)
@given(data=strategies.data())
def test_random_walk_over_models_methods_and_knobs_works(picture, data):
    model = data.draw(strategies.sampled_from(list(catalog())))
    spec = spec_url.model_spec(model)
    if method := data.draw(strategies.sampled_from([None, *METHODS])):
        spec = spec_url.with_method(spec, method)
    walk = strategies.lists(strategies.tuples(strategies.sampled_from(KNOBS), SHARES), max_size=4)
    for name, share in data.draw(walk):
        knob = {**knobs(spec), **knobs(spec.scaling)}.get(name)
        if knob and getattr(spec, name, getattr(spec.scaling, name, None)) is not None:
            try:
                spec = spec_url.move_knob(spec, name, at_share(knob, share))
            except ValueError:
                continue  # a sentence to the reader, and the knob goes back
    page = registry.page(picture.page)
    own = [choice for choice in page.choices if isinstance(choice, Number)]
    given = {choice.key: at_share(choice.knob, data.draw(SHARES)) for choice in own}
    request = PictureRequest(
        Subject(spec, model, spec_url.main_layer_of(model)), given=given, coarse=data.draw(strategies.booleans())
    )
    if picture.refuses(request):
        with pytest.raises(ValueError, match=r"\w"):
            picture(request)
    else:
        assert export.render(picture, request, "packed")


@each_picture
def test_all_file_formats_hold_the_same_numbers(picture):
    """What csv, json and the browser's message hold, all digits; the files open."""
    request = of(example_model(picture, "qwen3-8b-yarn"))
    # Fewer dots than usual: what takes long is packing them.
    made = {
        form: export.render(picture, request, form, Style(dpi=40) if form == "png" else None) for form in export.FORMS
    }
    message, plain = unpacked(made["packed"]), json.loads(made["json"])
    assert message["title"] == plain["title"] == picture(request).title
    assert wire_format.strip_markup(picture(request).sentence) == plain["sentence"]
    lines = made["csv"].decode().split("\n")
    rows = list(csv.reader(line for line in lines if line and not line.startswith("#")))
    if message["kind"] == "chart":
        for one, other in zip(message["figure"]["data"], plain["data"], strict=True):
            for name in ("x", "y", "z"):
                same(one.get(name), other.get(name))
        held = {float(cell) for row in rows for cell in row if number(cell)}
        for trace in plain["data"]:
            if trace.get("meta", {}).get("csv") is not False:
                wanted = trace.get("z", trace["y"])
                flat = np.array(wanted, dtype=object).ravel()
                assert {float(v) for v in flat if isinstance(v, (int, float))} <= held, trace.get("name")
    else:
        columns = plain["data"][0]["cells"]["values"]
        rows = rows or [[]]  # a table of which there is nothing yet
        assert rows[0] == plain["data"][0]["header"]["values"]
        assert [[text(cell) for cell in row] for row in zip(*columns, strict=True)] == rows[1:]
    if message["kind"] == "table":
        # The page shows sources as footnotes, files have them in brackets.
        shown = message["columns"].values()
        assert [[plain_cell(cell) if isinstance(cell, str) else cell for cell in one] for one in shown] == columns
    assert ElementTree.fromstring(made["svg"]).tag.endswith("svg")
    assert made["png"][:8] == b"\x89PNG\r\n\x1a\n"
    assert made["pdf"][:5] == b"%PDF-"
    assert made["html"].lower().startswith((b"<!doctype html>", b"<html"))
    assert b'src="http' not in made["html"]


def same(one, other):
    if one is None or isinstance(one, list):
        assert (one or None) == (other or None)
    else:
        values = np.array(other, dtype=object)
        values[values == None] = np.nan  # noqa: E711 (elementwise)
        np.testing.assert_array_equal(one.astype(np.float64), values.astype(np.float64))


def number(cell):
    try:
        float(cell)
    except ValueError:
        return False
    return bool(cell)


def text(cell):
    return "" if cell is None else repr(cell) if isinstance(cell, float) else str(cell)


@pytest.mark.parametrize(
    ("sentence", "html"),
    [
        ("**3 of 64 pairs** never", "<strong>3 of 64 pairs</strong> never"),
        ("*Unseen* and **`a*b*c`**", "<em>Unseen</em> and <strong><code>a*b*c</code></strong>"),
        ("<b>& `<i>`", "&lt;b&gt;&amp; <code>&lt;i&gt;</code>"),
        ("2 × 3 * 4", "2 × 3 * 4"),
        (r"a\_b and \*c\*", "a_b and *c*"),
    ],
)
def test_prose_supports_bold_emphasis_and_code_only(sentence, html):
    assert wire_format.markdown_to_html(sentence) == html


@pytest.mark.parametrize("form", ["svg", "html", "csv"])
@pytest.mark.parametrize("address", ["home/turning", "runtimes/matrix"])
@pytest.mark.parametrize("given", [{"label.foo": "x"}, {"xmin": "5"}])
def test_tables_and_clocks_refuse_alike_in_every_format(address, form, given):
    picture = registry.picture(*address.split("/"))
    request = read_address.read_request(registry.page(picture.page), {"model": "qwen3-8b"})
    with pytest.raises(ValueError, match=r"no line .foo.|has no x axis"):
        export.render(picture, request, form, Style.read(given))


@pytest.mark.parametrize("address", ["home/turning", "runtimes/matrix", "axes/clocks"])
def test_html_of_tables_and_clocks_has_metadata_and_style(address):
    picture = registry.picture(*address.split("/"))
    request = read_address.read_request(registry.page(picture.page), {"model": "qwen3-8b"})
    look = Style.read({"font": "serif", "font_size": "20px", "title": "my <own>", "grey": "yes", "theme": "dark"})
    page = export.render(picture, request, "html", look).decode()
    for name in ("spec", "address", "version", "picture"):
        assert f'<meta name="rope-viz:{name}" content="' in page
    assert "<h1>my &lt;own&gt;</h1>" in page
    assert "font-size:20px" in page
    assert "Times" in page
    assert "#0B62C4" not in page
