"""From which release to which each runtime computes what: only known releases, and between them nothing is known."""

import json

import pytest

from rope_viz.cli.main import main
from rope_viz.models.catalog import catalog
from rope_viz.pages.model.runtimes.history import LaneSpan, format_ends
from rope_viz.runtimes import emulate
from rope_viz.runtimes.history import format_releases, is_next, read_numbers, trace_releases
from rope_viz.runtimes.releases import RELEASES, format_version
from rope_viz.texts import use_language
from rope_viz.texts.languages import list_languages
from tests.configs import llama, yarn

ATTENTION = llama(
    max_position_embeddings=4096, rope_theta=10000.0, rope_scaling={**yarn(1024), "attention_factor": 0.7}
)
QWEN3 = llama(model_type="qwen3", head_dim=64, max_position_embeddings=4096, rope_theta=1e6)


def traced(config, runtime):
    return next(history for history in trace_releases(config) if history.runtime == runtime)


@pytest.mark.parametrize("language", list_languages())
def test_a_span_with_gaps_is_named_by_its_ends_in_every_language(language):
    releases = ("5.0.0", "5.10.4", "5.24.0")
    with use_language(language):
        assert format_ends(LaneSpan("transformers", releases, "", "", "agrees", "executed")) == "5.0.0 … 5.24.0"


def test_every_known_release_is_in_one_span_in_order():
    for history in trace_releases(ATTENTION):
        listed = [release for span in history.spans for release in span.releases]
        assert listed == sorted(listed, key=read_numbers)
        assert sorted(listed) == sorted(map(format_version, RELEASES[history.runtime].releases))


def test_a_span_says_what_the_release_itself_computes():
    for history in trace_releases(ATTENTION):
        for span in history.spans:
            for release in span.releases:
                found = emulate(ATTENTION, history.runtime, version=release)
                assert found.known.how == span.how
                if span.words == "refuses":
                    assert not found.supported
    vllm = traced(ATTENTION, "vllm")
    words = {release: (span.words, span.how) for span in vllm.spans for release in span.releases}
    assert words["0.6.6"] == words["0.8.5"] == words["0.10.2"] == ("cos and sin ×1.627", "executed")
    assert words["0.33.0"] == ("agrees", "executed")


@pytest.mark.parametrize(
    ("config", "runtime", "change"),
    [
        # tests/goldens/older.json: YaRN's attention_factor is not read before 0.33.0.
        (ATTENTION, "vllm", ("0.10.2", "cos and sin ×1.627", "0.33.0", "agrees")),
        # The list of vLLM 0.6.6 has no qwen3.
        (QWEN3, "vllm", ("0.6.6", "refuses", "0.8.5", "agrees")),
        # tests/goldens/releases.json: YaRN of 4.43.4 starts from the limit.
        (catalog()["yarn-llama-2-7b-128k"].config, "transformers", ("4.43.4", "×30.76 at pair 46", "4.52.4", "agrees")),
    ],
    ids=["attention_factor", "qwen3", "yarn-from-limit"],
)
def test_differences_between_known_releases_in_a_row_are_shown(config, runtime, change):
    history = traced(config, runtime)
    shown = [
        tuple(text for one in change for text in (format_version(one.emulation.version), history.describe(one)))
        for change in history.changes
    ]
    assert change in shown


def test_releases_between_known_ones_stay_not_known():
    assert traced(QWEN3, "vllm").gaps == [("0.6.6", "0.8.5"), ("0.8.5", "0.10.2"), ("0.10.2", "0.33.0")]
    assert traced(QWEN3, "sglang").gaps == [("0.4.6", "0.5.23")]
    unread = traced({**ATTENTION, "model_type": "internlm2"}, "vllm")
    assert unread.spans[0].words == "not known"
    assert unread.changes == []


@pytest.mark.parametrize(
    ("runtime", "older", "newer", "follows"),
    [
        ("transformers", "5.23.0", "5.24.0", True),
        ("transformers", "5.4.0", "5.5.4", True),
        ("transformers", "4.57.6", "5.0.0", False),
        ("vllm", "0.8.5", "0.10.2", False),
        ("sglang", "0.4.6", "0.5.23", False),
        ("sglang", "0.5.22", "0.5.23", True),
        ("sglang", "0.5.20", "0.5.23", False),
        ("llama.cpp", "0c1e57098", "1d2f60000", False),
    ],
)
def test_only_numbers_without_room_between_follow_each_other(runtime, older, newer, follows):
    assert is_next(runtime, older, newer) is follows


def test_ranges_leave_no_release_out():
    assert format_releases("transformers", ["4.57.6", "5.0.0", "5.1.0", "5.2.1"]) == "4.57.6, 5.0.0 to 5.2.1"
    assert format_releases("vllm", ["0.6.6", "0.8.5"]) == "0.6.6, 0.8.5"


def test_command_prints_the_history(capsys, tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(ATTENTION))
    assert main(["runtimes", str(path), "--history"]) == 0
    printed = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert any(line.startswith("vllm 0.6.6, 0.8.5, 0.10.2 cos and sin x1.627 executed") for line in printed)
    assert "sglang: not known between 0.4.6 and 0.5.23" in printed
    assert main(["runtimes", str(path), "--history", "--json"]) == 0
    found = {each["runtime"]: each for each in json.loads(capsys.readouterr().out)}
    first, last = found["vllm"]["spans"]
    assert (first["from"], first["to"], first["agrees"], first["known"]) == ("0.6.6", "0.10.2", False, "executed")
    assert (last["releases"], last["verdict"], last["agrees"]) == (["0.33.0"], "agrees", True)
    assert "tests/goldens/older.json" in first["source"]
    assert ["0.8.5", "0.10.2"] in found["vllm"]["gaps"]


@pytest.mark.parametrize("more", [["--release", "vllm=0.8.5"], ["--hf-overrides", '{"rope_theta": 5e5}']])
def test_history_takes_no_release_and_no_override(more, capsys, tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(ATTENTION))
    assert main(["runtimes", str(path), "--history", *more]) == 2
    assert "omit --release and overrides" in capsys.readouterr().err


def test_no_release_has_code_that_travels_with_the_model():
    words = {span.words for span in traced(catalog()["internlm2.5-7b"].config, "transformers").spans}
    assert words == {"refuses", "refuses: remote code"}
