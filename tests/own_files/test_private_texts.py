"""What a config is shown as holds no text of its owner, by any door; what is given back to the owner holds all."""

import base64
import contextlib
import gzip
import json
import logging
import zlib
from types import SimpleNamespace

import pytest

from rope_viz.cli.main import main
from rope_viz.models.catalog import catalog
from rope_viz.models.read_upload import read_upload
from rope_viz.models.spec_url import Subject
from rope_viz.models.user_config import Upload
from rope_viz.own_files import config_link
from rope_viz.own_files.config_keys import DECLARED, PRIVATE, cut_config, list_keys, list_types
from rope_viz.own_files.shared_config import share_config
from rope_viz.pages import compare, registry
from rope_viz.picture import export, read_address, write_address
from rope_viz.picture.picture_request import PictureRequest, share_variant
from rope_viz.reports import report, report_site
from rope_viz.serving import picture_route, render_process
from rope_viz.widgets.saved_page import make_page
from tests.configs import QWEN3_8B
from tests.own_files.private_texts import fill_config, make_texts

TEXTS = make_texts(120, seed=1)
CONFIG = fill_config(TEXTS)
"""It is the same for all doors, because reading a config some fifty times takes a second."""


def find_texts(content, texts=TEXTS):
    """Return those of the texts that a file or an address holds."""
    data = content if isinstance(content, bytes) else str(content).encode()
    with contextlib.suppress(OSError, EOFError):
        data = gzip.decompress(data)
    shown = (data, data.replace(b"\\u003c", b"<"))
    return [
        text for text in texts if any(text.encode() in one or json.dumps(text)[1:-1].encode() in one for one in shown)
    ]


def make_request(config, **changes):
    own = read_upload(json.dumps(config))
    subject = Subject(own.specs[own.layer], layer=own.layer, own=own)
    return PictureRequest(subject, held={"own": "A" * 43}, **changes)


def read_link(text):
    return json.loads(zlib.decompress(base64.urlsafe_b64decode(text + "==")))


def list_strings(part):
    if isinstance(part, str):
        yield part
    elif isinstance(part, dict):
        for value in part.values():
            yield from list_strings(value)
    elif isinstance(part, list):
        for value in part:
            yield from list_strings(value)


def test_filled_config_holds_its_texts():
    assert len(find_texts(json.dumps(CONFIG, ensure_ascii=False))) > 40


@pytest.mark.parametrize("count", [40, pytest.param(1000, marks=pytest.mark.slow)])
def test_no_key_carries_a_text(count):
    texts = make_texts(count, seed=2)
    keys = sorted(list_keys() | PRIVATE | QWEN3_8B.keys() | {"token", "user", "rope_note", "num_atention_heads"})
    for number in range(0, count, len(keys)):
        for wrap in (lambda text: text, lambda text: [text], lambda text: {text: text, "type": text, "rope": [text]}):
            mine = {key: wrap(texts[(number + place) % count]) for place, key in enumerate(keys)}
            numbers = {key: value for key, value in QWEN3_8B.items() if not isinstance(value, (str, dict))}
            for config in (
                mine,
                {**mine, **numbers},
                {**QWEN3_8B, "rope_scaling": mine},
                {**numbers, "text_config": mine},
            ):
                try:
                    cut = cut_config(config)
                except ValueError:
                    continue  # it is no config
                assert not find_texts(json.dumps(cut, ensure_ascii=False), texts)


@pytest.mark.parametrize("seed", [3, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(4, 14))])
def test_link_and_addresses_hold_no_text(seed):
    texts = make_texts(120, seed)
    request = make_request(fill_config(texts))
    link = config_link.write_config(request.own)
    carried = read_link(link) if link else {}
    assert not find_texts(json.dumps(carried, ensure_ascii=False), texts)
    assert not find_texts(write_address.write_model(request.subject), texts)
    assert not find_texts(request.current, texts)
    assert not find_texts(share_variant(request.subject), texts)
    for picture in registry.pictures():
        with contextlib.suppress(KeyError):
            assert not find_texts(write_address.link_query(request, picture), texts)


def test_texts_of_a_link_are_from_closed_sets():
    carried = read_link(config_link.write_config(read_upload(json.dumps({**QWEN3_8B, "model_type": "hf_AbC"}))))
    assert carried["model_type"] not in ("hf_AbC", "qwen3")
    for model in catalog().values():
        config = {key: value for key, value in model.config.items() if key != "_about"}
        kept = cut_config(config)
        assert kept.get("model_type") == config.get("model_type") in (*list_types(), None)
        names = {model.name, f"Fine-tune of {model.name}"}
        for text in list_strings({key: value for key, value in kept.items() if key != "_name_or_path"}):
            assert len(text) < 100
            assert not {"/", "@"} & set(text)
        assert kept.get("_name_or_path") in (None, *names)


FORMS = [pytest.param(form, marks=pytest.mark.slow) if form in export.WHOLE else form for form in export.FORMS]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("address", ["frequencies/wavelengths", "runtimes/matrix"])
def test_picture_of_every_form_holds_no_text(address, form):
    picture = registry.picture(*address.split("/"))
    assert not find_texts(export.render(picture, make_request(CONFIG), form))


@pytest.mark.slow
@pytest.mark.parametrize("address", [picture.address for picture in registry.pictures()])
def test_every_picture_holds_no_text(address):
    picture, request = registry.picture(*address.split("/")), make_request(CONFIG)
    for form in ("packed", "json", "svg", "html"):
        try:
            content = export.render(picture, picture.finished(request), form)
        except ValueError as error:
            content = str(error)
        assert not find_texts(content), form


@pytest.mark.slow
def test_report_and_page_of_a_site_hold_no_text():
    page = report.to_html(make_request(CONFIG), ["frequencies/wavelengths"])
    entry, content = report_site.render_page("a model", "a.html", json.dumps(CONFIG).encode())
    assert not find_texts(page)
    assert not find_texts(content)
    assert not find_texts(json.dumps(entry.as_dict()))


SLOW_KEYS = [pytest.param(key, marks=pytest.mark.slow) for key in ("hidden_size", "num_attention_heads", "layer_types")]


@pytest.mark.parametrize("key", ["rope_scaling", "rope_theta", *SLOW_KEYS])
def test_page_of_a_config_that_cannot_be_read_holds_no_text(key):
    for value in (TEXTS[0], {"rope_type": TEXTS[0]}, [TEXTS[1]]):
        _, content = report_site.render_page("a model", "a.html", json.dumps({**CONFIG, key: value}).encode())
        assert not find_texts(content)


@pytest.mark.parametrize("content", [json.dumps(TEXTS[0]), json.dumps([TEXTS[1]]), TEXTS[2]])
def test_page_of_a_file_that_is_no_config_holds_no_text(content):
    _, page = report_site.render_page("a model", "a.html", content.encode())
    assert not find_texts(page)


@pytest.mark.slow
def test_markdown_report_holds_no_text():
    text, files = report.to_markdown(make_request(CONFIG), "files")
    assert not find_texts(text)
    for content in files.values():
        assert not find_texts(content)


@pytest.mark.slow
def test_saved_page_holds_no_text():
    assert not find_texts(make_page(registry.picture("scaling", "comparison"), make_request(CONFIG)))


COMMANDS = {
    "badge": ("badge CONFIG -o OUT.svg",),
    "figure": ("figure frequencies/wavelengths CONFIG -o OUT.svg", "figure scaling/comparison CONFIG -o OUT.json"),
    "variant": ("figure scaling/comparison qwen3-8b --variant model=CONFIG -o OUT.svg",),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_files_of_commands_hold_no_text(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps(CONFIG), encoding="utf-8")
    for number, command in enumerate(COMMANDS[name]):
        words = command.replace("CONFIG", "config.json").replace("OUT", f"out{number}").split()
        code = main(words)
        assert code == 0, capsys.readouterr().err
    made = [path for path in tmp_path.iterdir() if path.name != "config.json"]
    assert made
    for path in made:
        assert not find_texts(path.read_bytes()), path.name


@pytest.mark.slow
@pytest.mark.parametrize("command", ["report CONFIG -o out.html", "report CONFIG -o out.md", "site CONFIG -o www"])
def test_reports_and_sites_hold_no_text(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.json").write_text(json.dumps(CONFIG), encoding="utf-8")
    assert main(command.replace("CONFIG", "model.json").split()) == 0
    made = [path for path in tmp_path.rglob("*") if path.is_file() and path.name != "model.json"]
    assert len(made) >= 1
    for path in made:
        assert not find_texts(path.read_bytes()), path


def fail(request):
    raise KeyError(f"{request.own.config['_name_or_path']} {TEXTS[0]}")


def test_log_holds_no_text(caplog, monkeypatch):
    with caplog.at_level(logging.DEBUG):
        try:
            try:
                fail(make_request(CONFIG))
            except KeyError as cause:
                raise TypeError(TEXTS[3]) from cause
        except TypeError as error:
            picture_route.error_response(error, "frequencies/wavelengths")
        reading = SimpleNamespace(function=lambda text: {}[text], arguments=(TEXTS[4],))
        render_process.read_content(reading)
    assert "KeyError" in caplog.text
    assert "fail" in caplog.text
    assert not find_texts(caplog.text)


def test_old_link_is_cut_when_it_is_read():
    old = (
        base64.urlsafe_b64encode(zlib.compress(json.dumps({**QWEN3_8B, "token": "hf_AbC"}).encode()))
        .decode()
        .rstrip("=")
    )
    own = config_link.read_config(old)
    assert "token" not in own.config
    assert not any("hf_AbC" in note for note in own.notes)
    assert read_link(config_link.write_config(own)).get("token", "") == ""
    assert compare.WITH.parse(old).name == config_link.write_config(own)
    query = {"model": "custom", "config": old}
    request = read_address.read_request(registry.page("scaling"), query)
    assert "token" not in read_link(write_address.write_model(request.subject)["config"])


def test_owner_gets_every_key_back(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    config = {**QWEN3_8B, "token": TEXTS[0], "task_specific_params": {"prompt": TEXTS[1]}}
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    assert main("extend config.json --to 131072 -o new.json".split()) == 0, capsys.readouterr().err
    written = json.loads((tmp_path / "new.json").read_text(encoding="utf-8"))
    assert written["token"] == TEXTS[0]
    assert written["task_specific_params"] == {"prompt": TEXTS[1]}


def test_a_shared_config_has_the_same_embeddings():
    own = read_upload(json.dumps(CONFIG))
    shown = share_config(own)
    assert isinstance(shown, Upload)
    assert shown.specs == own.specs
    assert shown is share_config(own)
    assert share_config(shown) is shown
    assert DECLARED["private"]
