"""My model: GPUs that fit, GGUF files, repairs, runtimes of the new config, settings of other pages, layers."""

import contextlib
import csv
import io
import json
import re

import pytest

from rope_viz.advice.plan.extension_plan import describe_fit, make_plan
from rope_viz.advice.plan.runtime_instructions import write_instructions
from rope_viz.advice.plan.verdict import make_verdict
from rope_viz.cli.main import main
from rope_viz.embedding.scaling import METHODS
from rope_viz.models.catalog import catalog, main_layer, model_specs
from rope_viz.models.formats.gguf import read_header, summarise_header
from rope_viz.models.spec_url import Subject, with_first_method
from rope_viz.pages import scaling
from rope_viz.picture.picture_request import PictureRequest
from rope_viz.ui.session import KEY
from tests.configs import FAULTY_QWEN3, QWEN3_8B, yarn
from tests.gguf_files import write_gguf
from tests.pages.app_texts import texts_of
from tests.pages.test_verdicts_agree import GGUF

QWEN_BROKEN = json.dumps({**QWEN3_8B, "rope_scaling": {**yarn(32_768), "factor": "4"}}, indent=2)[:-2] + ",\n}"
LOOKS = {131_072: "documented", 262_144: "further", 1_048_576: "unshown"}


@pytest.fixture
def drop(open_page):
    """drop(content, name) opens My model and drops a file."""

    def run(content, name="config.json", **params):
        app = open_page("model", **params)
        field = next(item for item in app.get("file_uploader") if item.key.startswith("upload.file"))
        return field.set_value((name, content, "application/json")).run()

    return run


def read_header_line(app):
    return next(one.value for one in app.markdown if "base 1,000,000" in one.value)


@pytest.mark.parametrize(("target", "look"), LOOKS.items())
def test_a_verdict_looks_as_sure_as_it_is(open_page, target, look):
    app = open_page("model", model="qwen3-8b", target=str(target))
    verdict = make_verdict(make_plan(QWEN3_8B, target, ["vllm"]))
    assert [one.value for one in app.header] == [verdict.headline]
    marks = [one.value for one in app.html if one.value.startswith('<p class="rv-certainty')]
    assert marks == [f'<p class="rv-certainty rv-{look}">{verdict.mark}</p>']
    assert verdict.measured in texts_of(app)


@pytest.mark.parametrize(
    ("config", "target", "dtype", "count", "fewer"),
    [
        (QWEN3_8B, 1_048_576, None, "3", "2 with the cache in fp8"),
        (QWEN3_8B, 524_288, None, "2", "one with the cache in fp8"),
        (catalog()["deepseek-v3.2"].whole, 1_048_576, None, "20", ""),
    ],
)
def test_memory_names_the_gpus_that_make_it_fit(config, target, dtype, count, fewer):
    memory = make_plan(config, target, ["vllm"], dtype=dtype).memory
    told = describe_fit(memory)
    assert f"needs at least {count} such GPUs" in told[-1]
    assert fewer in told[-1]
    assert memory.weights + memory.cached <= int(count) * 0.9 * 80e9
    assert memory.weights + memory.cached > (int(count) - 1) * 0.9 * 80e9


def test_the_label_of_the_limit_is_at_its_line(open_page):
    app = open_page("model", model="qwen3-8b", target="1048576")
    bar = next(one.value for one in app.html if "rv-memory" in one.value)
    line = re.search(r'<b style="left:([\d.]+)%"', bar)[1]
    assert f"margin-left:{line}%;transform:translateX(-{line}%)" in bar
    assert "weights 16.4 GB" in bar
    assert "155 GB" in bar
    assert not re.search(r"<i [^>]*>[^<]", bar)


def test_a_gguf_file_gets_flags_of_llama_cpp(drop, tmp_path):
    path = write_gguf(tmp_path / "model.gguf", "qwen3", GGUF)
    app = drop(json.dumps(summarise_header(read_header(path))).encode(), "model.gguf")
    assert not app.exception
    assert list(app.warning) == []
    commands = [one.value for one in app.code if one.value.startswith("llama-server")]
    assert commands
    assert "--rope-scale 4.0 --yarn-orig-ctx 32768" in commands[0]
    assert not [one for one in app.get("download_button") if one.proto.label == "Download config.json"]
    assert read_header_line(app).startswith("GGUF file · recognised")
    with contextlib.redirect_stdout(io.StringIO()) as out:
        assert main(["extend", str(path), "--to", "128k"]) == 0
    assert commands[0] in out.getvalue()
    assert "--- config.json (yours)" not in out.getvalue()


def test_page_and_command_line_make_one_repair(drop, tmp_path):
    app = drop(QWEN_BROKEN.encode())
    card = " ".join(one.value for one in app.html)
    for text in ("a comma before a closing bracket", "factor is the text", "max_position_embeddings must be 131,072"):
        assert text in card
    found = app.session_state[KEY].rejected.diagnosis
    (tmp_path / "broken.json").write_text(QWEN_BROKEN)
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as told:
        main(["check", str(tmp_path / "broken.json"), "--repair"])
    assert json.loads(found.repaired) == json.loads(out.getvalue())
    assert "numbers-as-text" in told.getvalue()
    assert "factor-mismatch" in told.getvalue()
    app.button(key="rejected.repair").click().run()
    assert [one.value for one in app.header] == ["Keep the config as it is"]
    assert json.loads(found.repaired)["rope_scaling"]["factor"] == 4


def test_the_runtimes_read_the_config_of_the_answer(open_page, picture_requests, tmp_path):
    app = open_page("model", model="qwen3-8b", target="131072", **{"extend.tab": "runtimes"})
    labels = [tab.label for tab in app.tabs]
    counted = next(re.fullmatch(r"Runtimes: (\d+) of (\d+) agree", label) for label in labels if "agree" in label)
    shown = {picture.address for picture in picture_requests(app)}
    assert "extend/readers" in shown
    assert "runtimes/curves" not in shown  # every line would be the same
    plan = make_plan(QWEN3_8B, 131_072, ["vllm"])
    assert int(counted[1]) >= len(plan.file.runtimes) > 3
    file = tmp_path / "readers.csv"
    assert main(["figure", "extend/readers", "qwen3-8b", "--target", "131072", "-o", str(file)]) == 0
    rows = list(csv.reader(line for line in file.read_text().splitlines() if not line.startswith("#")))
    verdicts = [row[1] for row in rows[1:]]
    agreeing = sum(verdict == "the reference" or verdict.startswith("agrees") for verdict in verdicts)
    assert agreeing == int(counted[1])


def test_a_differing_runtime_keeps_its_curve(drop, picture_requests):
    app = drop(json.dumps(FAULTY_QWEN3).encode(), **{"extend.tab": "runtimes"})
    assert "runtimes/curves" in {picture.address for picture in picture_requests(app)}


@pytest.mark.parametrize("runtime", ["vllm", "sglang"])
def test_snippets_hold_the_values_of_the_command(runtime):
    plan = make_plan(QWEN3_8B, 131_072, [runtime])
    one = plan.instructions[0]
    assert "OVERRIDES" not in one.check
    assert "LENGTH" not in one.check
    compile(one.check, "snippet", "exec")
    overrides = json.loads(one.text.split("'")[1])
    assert f"overrides = {overrides!r}\n" in one.check
    kept = write_instructions(plan.recognised.spec, runtime, config=QWEN3_8B, length=16_384, file=plan.file)
    compile(kept.check, "snippet", "exec")


def test_a_setting_of_another_page_is_named_and_can_be_used(open_page):
    app = open_page("model", model="qwen3-8b", method="ntk", factor="4", target="131072")
    assert "On other pages you set **NTK-aware with factor 4**" in texts_of(app)
    assert [one.value for one in app.header] == ["Use YaRN (as released) with factor 4"]
    app.button(key="use.setting").click().run()
    assert app.query_params["extend.way"] == "set"
    assert "On other pages" not in texts_of(app)
    assert "You set it on another page." in texts_of(app)


def test_a_documented_setting_needs_no_notice(open_page):
    app = open_page("model", model="qwen3-8b", method="yarn", factor="4", target="131072")
    assert "On other pages" not in texts_of(app)
    assert [one for one in app.html if one.value.startswith('<p class="rv-certainty rv-documented')]


def test_choosing_a_method_gives_the_factor_of_the_example(open_page):
    app = open_page("scaling", model="qwen3-8b")
    app.selectbox(key="select.Scaling method").set_value("yarn").run()
    spec = app.session_state[KEY].choice.spec
    assert (spec.scaling.name, spec.scaling.factor, spec.target) == ("yarn", 4.0, 131_072)


def test_every_example_is_what_the_choice_gives():
    unscaled = [
        model
        for model in catalog().values()
        if not model_specs(model.id)[main_layer(model, model_specs(model.id))].is_scaled
    ]
    assert len(unscaled) > 20
    for model in unscaled:
        specs = model_specs(model.id)
        layer = main_layer(model, specs)
        subject = Subject(specs[layer], model.id, layer)
        for method in scaling.EXAMPLE.options:
            if method not in METHODS or method == "none":
                continue
            request = PictureRequest(subject, None, {scaling.EXAMPLE.key: method})
            chosen = with_first_method(subject.spec, method, subject.start)
            shown = scaling.shown(request, request.spec)
            assert (model.id, method, shown.scaling, shown.target) == (model.id, method, chosen.scaling, chosen.target)


@pytest.mark.parametrize(
    ("model", "is_mixed"), [("qwen3-8b", False), ("llama-3.1-8b", False), ("gemma-3-27b-global", True)]
)
def test_equal_layers_have_no_strip(open_page, picture_requests, model, is_mixed):
    app = open_page("model", model=model)
    assert ("extend/layers" in {picture.address for picture in picture_requests(app)}) == is_mixed


def test_a_fine_tune_is_named_next_to_its_own_name(drop):
    app = drop(json.dumps({**QWEN3_8B, "vocab_size": 152_064, "_name_or_path": "me/MyQwen"}).encode())
    assert [one.value for one in app.title] == ["me/MyQwen"]
    assert read_header_line(app).startswith("recognised as a fine-tune of Qwen3 8B")


def test_the_runtime_is_chosen_by_one_click(open_page):
    app = open_page("model", model="qwen3-8b")
    control = next(one for one in app.button_group if one.key == "choice.extend.for")
    control.set_value("sglang").run()
    assert app.query_params["extend.for"] == "sglang"
    assert any("sglang.launch_server" in one.value for one in app.code)
