"""Every page, picture, command and link gives the same model, trained length, factor and counts of pairs.

Five models of the catalog and five own configs. The page's link is opened on a second server without sessions and
stored content.
"""

import contextlib
import io
import json
import re

import numpy as np
import pytest

from rope_viz.cli.main import main
from rope_viz.own_files import blob_store
from rope_viz.pages.registry import moved
from rope_viz.picture.wire_format import strip_markup
from rope_viz.serving import picture_route
from tests.configs import FOUR_NUMBERS_OF_LLAMA_3, LONGROPE, QWEN3_8B, yarn
from tests.serving.test_picture_route import get

pytestmark = pytest.mark.slow

GEMMA_3_27B = {
    "model_type": "gemma3",
    "text_config": {
        **{"model_type": "gemma3_text", "hidden_size": 5376, "num_attention_heads": 32, "num_key_value_heads": 16},
        **{"num_hidden_layers": 62, "head_dim": 128, "intermediate_size": 21504, "max_position_embeddings": 131072},
        **{"rope_theta": 1e6, "rope_local_base_freq": 1e4, "sliding_window": 1024, "sliding_window_pattern": 6},
        **{"vocab_size": 262208, "rope_scaling": {"rope_type": "linear", "factor": 8.0}},
    },
}
QWEN3_8B_WITH_YARN = {**QWEN3_8B, "max_position_embeddings": 131_072, "rope_scaling": yarn(32_768)}
LINEAR = {**FOUR_NUMBERS_OF_LLAMA_3, "rope_scaling": {"rope_type": "linear", "factor": 4.0}}
# {name: (config, trained length, factor)}. The lengths are from the reports that the catalog names (Qwen3, section 3.2;
# Gemma 3, section 5.3) or from the configs.
CASES = {
    "qwen3-8b": ("qwen3-8b", 32_768, None),
    "llama-3.1-8b": ("llama-3.1-8b", 8_192, 8.0),
    "gemma-3-27b-global": ("gemma-3-27b-global", 131_072, 8.0),
    "deepseek-v3": ("deepseek-v3", 4_096, 40.0),
    "gpt-oss-20b": ("gpt-oss-20b", 4_096, 32.0),
    "own Qwen3 with YaRN": (
        {**QWEN3_8B, "max_position_embeddings": 131_072, "rope_scaling": yarn(32_768)},
        32_768,
        4.0,
    ),
    "own LongRoPE": (LONGROPE, 4_096, None),
    "own linear Llama": (LINEAR, 4_096, 4.0),
    "own wrapper": (GEMMA_3_27B, 131_072, 8.0),
    "own near Qwen3": ({**QWEN3_8B, "rope_theta": 5_000_000}, 32_768, None),
}
# The pictures that show a model's lengths, factor or counts; those of Extend and Runtimes also show its name.
PICTURES = (
    *("scaling/comparison", "frequencies/wavelengths", "rotation/turning", "decay/curves"),
    *("extend/ways", "extend/speeds", "extend/options", "runtimes/matrix"),
)
TABS = {"extend": "why", "runtimes": "runtimes"}
"""The tab of My model that shows these pictures."""
PAGES = tuple(dict.fromkeys(address.partition("/")[0] for address in PICTURES))


@pytest.fixture
def start_server(monkeypatch):
    """start_server() drops the stored contents and pictures, like a new server."""

    def start():
        monkeypatch.setattr(picture_route, "GALLERY", picture_route.Gallery())
        monkeypatch.setattr(blob_store, "STORE", blob_store.Store())

    return start


@pytest.fixture(params=CASES)
def case(request, tmp_path):
    """Return the config's name on the command line, the own config or None, its trained length and factor."""
    config, trained, factor = CASES[request.param]
    if isinstance(config, str):
        return config, None, trained, factor
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config))
    return str(path), config, trained, factor


def open_model(open_page, name, config):
    """Open the first page with the model of the list, or paste the config into it."""
    if config is None:
        return open_page(PAGES[0], model=name)
    app = open_page(PAGES[0])
    next(one for one in app.text_area if one.key.startswith("upload.text")).set_value(json.dumps(config))
    next(one for one in app.button if one.label == "Use this config").click()
    return app.run()


def read_queries(app):
    """Return {picture: the query with which the browser requests it} of the open page."""
    found = {}
    for element in app.get("bidi_component"):
        if element.proto.component_name.startswith("rope_viz_picture"):
            found |= {at: data["query"] for at, data in json.loads(element.proto.bytes)["pictures"].items()}
    return found


def read_knobs(app):
    """Return {label: its values on the page} of all sliders."""
    found = {}
    for element in app.get("bidi_component"):
        if element.proto.component_name.startswith("rope_viz_knob"):
            for row in json.loads(element.proto.bytes)["knobs"]:
                found.setdefault(row["label"], set()).add(row["value"])
    return found


def fetch_picture(address, query):
    """Return the sentence and the spec of a picture, and its CSV, from the route."""
    answers = [get(f"{address}.{form}", query) for form in ("json", "csv")]
    assert [answer.status for answer in answers] == [200, 200], answers[0].body
    # The comment lines name the content of this session.
    rows = [line for line in answers[1].body.decode().splitlines() if not line.startswith("#")]
    return read_json(answers[0].body) | {"csv": rows}


def read_json(content):
    made = json.loads(content)
    # The name in a spec is that of the menu; a file on the command line has none.
    spec = {key: value for key, value in made["spec"].items() if key != "model"}
    return {"sentence": made["sentence"], "spec": spec}


def run_command(*arguments):
    """Return the output of the command line; exit codes tell of findings, not of failures."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        assert main([str(each) for each in arguments]) in (0, 1, 2)
    return out.getvalue()


def count_pairs(over_plain, factor):
    """Count kept, blended and divided pairs from the frequencies over those of plain RoPE."""
    share = np.array(over_plain)
    kept = np.isclose(share, 1.0, rtol=1e-9)
    divided = ~kept & (share <= (1.0 + 1e-9) / (factor or 1.0))
    return {"kept": int(kept.sum()), "blended": int((~kept & ~divided).sum()), "divided": int(divided.sum())}


def read_page(app):
    """Return the text of the page itself, without the sidebar."""
    return [one.value for kind in ("title", "header", "markdown", "html") for one in app.main.get(kind)]


def open_tab(app, page):
    """Open another page in the same session, as a click on the menu does."""
    app.switch_page(f"{moved().get(page, (page, ''))[0]}.py")
    if page in TABS:
        app.query_params["extend.tab"] = TABS[page]
    app.run()
    assert not app.exception
    return read_page(app), read_knobs(app), read_queries(app)


def test_pages_figures_commands_and_links_agree(open_page, start_server, tmp_path, case):
    name, config, trained, factor = case
    start_server()
    app = open_model(open_page, name, config)
    link = dict(app.query_params.items())
    seen = {page: open_tab(app, page) for page in PAGES}
    drawn = {address: fetch_picture(address, seen[page_of(address)][2][address]) for address in PICTURES}

    start_server()
    for page, (text, knobs, _) in seen.items():
        elsewhere = open_page(page, **link)
        assert not elsewhere.exception
        assert (page, read_knobs(elsewhere)) == (page, knobs)
        # A link carries the keys that the project reads, so the rest of the file cannot be downloaded there.
        other = [one for one in read_page(elsewhere) if one not in text and not one.startswith("**No download:**")]
        assert (page, other) == (page, [])
        there = read_queries(elsewhere)
        for address in PICTURES:
            if page_of(address) == page:
                assert (address, fetch_picture(address, there[address])) == (address, drawn[address])

    for address in PICTURES:
        run_command("figure", address, name, "-o", tmp_path / "drawn.json")
        made = read_json((tmp_path / "drawn.json").read_bytes())
        assert (address, made["spec"]) == (address, drawn[address]["spec"])
        assert (address, made["sentence"]) == (address, drawn[address]["sentence"])

    at = ("--length", drawn["scaling/comparison"]["spec"]["target"])
    table = json.loads(run_command("table", name, *at, "--json"))
    needed = max(seen["extend"][1]["Context needed"])
    extended = json.loads(run_command("extend", name, "--to", needed, "--runtime", "vllm", "--json"))
    assert [table["trained_length"], extended["have"]["trained"]["length"]] == [trained, trained]
    assert json.loads(run_command("check", name, "--json"))["trained_length"] == trained
    assert extended["have"]["sentence"] in strip_markup(" ".join(seen["extend"][0]))
    assert extended["ways"][0]["title"] in drawn["extend/ways"]["sentence"]
    for page, (_, knobs, _) in seen.items():
        assert (page, knobs.get("Trained length", {trained})) == (page, {trained})
        if factor is not None:
            assert (page, knobs.get("Factor s", {factor})) == (page, {factor})
    for each in drawn.values():
        assert each["spec"]["scaling"].get("factor") == factor
    counts = count_pairs(table["over_plain"], factor)
    for address in ("scaling/comparison", "frequencies/wavelengths"):
        sentence, pairs = drawn[address]["sentence"], len(table["over_plain"])
        # The page Frequencies does not count the pairs of a model without scaling.
        if counts["kept"] < pairs or page_of(address) == "scaling":
            assert (address, read_counts(sentence, pairs)) == (address, counts), sentence
    reference = json.loads(run_command("runtimes", name, *at, "--json"))[0]
    assert reference["runtime"] == "transformers"
    assert np.allclose(reference["inv_freq"], table["inv_freq"], rtol=1e-6)


def page_of(address):
    return address.partition("/")[0]


def read_counts(sentence, pairs):
    """Return {band: count} of a sentence that counts pairs by band or says that the model is not scaled."""
    whole = re.search(rf"All {pairs} pairs (keep|are blended|have their frequency divided)", sentence)
    if whole or "not scaled" in sentence:
        band = {"are blended": "blended", "have their frequency divided": "divided"}.get(
            whole[1] if whole else "", "kept"
        )
        return {"kept": 0, "blended": 0, "divided": 0} | {band: pairs}
    found = {
        "kept": re.search(rf"(\d+) of {pairs} pairs keeps?", sentence),
        "blended": re.search(r"(\d+) (?:is|are) blended", sentence),
        "divided": re.search(r"(\d+) (?:is|are )?divided", sentence),
    }
    return {band: int(each[1]) if each else 0 for band, each in found.items()}
