"""A runtime reads a wrapper only where its own list of types has it."""

import json
from pathlib import Path

import pytest

from rope_viz.cli.spec import read_config
from rope_viz.models.architecture import all_architectures
from rope_viz.models.no_rope_types import reasons
from rope_viz.runtimes import RUNTIMES, emulate
from rope_viz.runtimes.compare import compare
from rope_viz.runtimes.known_types import list_types
from rope_viz.runtimes.releases import OLDER, RELEASES
from tests.gguf_files import write_gguf
from tests.offenders import for_each

RECORDS = all_architectures()
WRAPPERS = sorted(
    kind for kind, record in RECORDS.items() if record.text is not None and record.text.type not in reasons()
)
LISTED = [(name, release) for name, release in (*RUNTIMES, *OLDER) if list_types(name, release) is not None]
INTERNVL = {
    "model_type": "internvl",
    "architectures": ["InternVLForConditionalGeneration"],
    "text_config": {
        **{"model_type": "qwen2", "hidden_size": 3584, "num_attention_heads": 28, "num_key_value_heads": 4},
        **{"num_hidden_layers": 28, "max_position_embeddings": 32768, "rope_theta": 1000000.0},
    },
}


def test_lists_of_all_releases_with_types_were_read():
    assert {name for name, _ in LISTED} == {"transformers", "vllm", "sglang", "llama.cpp", "mlx-lm"}
    assert len(LISTED) == sum(len(RELEASES[name].releases) for name, _ in dict(LISTED).items())
    assert len(WRAPPERS) > 110


@for_each(WRAPPERS)
def test_no_wrapper_is_executed_where_the_release_lacks_it(kind):
    for name, release in LISTED:
        found = emulate({"model_type": kind}, runtime=name, version=release)
        if kind in list_types(name, release):
            continue
        assert found.known.how != "executed", (name, release)
        if name == "mlx-lm" or (name == "transformers" and release != RELEASES[name].today[0]):
            assert not found.supported, (name, release)


@for_each(WRAPPERS)
def test_wrapper_that_transformers_lacks_is_remote_code(kind):
    found = emulate({"model_type": kind}, runtime="transformers")
    assert bool(found.remote) == (kind not in list_types("transformers", "5.24.0"))


def test_internvl_is_refused_by_the_two_that_have_no_such_type():
    """CONFIG_MAPPING_NAMES of transformers 4.43.4 was read; mlx-lm 0.32.2 was run, and raises ValueError."""
    found = {(one.emulation.runtime, one.emulation.version): one for one in compare(INTERNVL)}
    for at in (("transformers", "4.43.4"), ("mlx-lm", "0.32.2")):
        assert (found[at].verdict(), found[at].agrees) == ("refuses (by rule)", False)
        assert "internvl" in found[at].emulation.reason
    assert found["transformers", "4.57.6"].verdict() == "agrees"


@pytest.mark.parametrize("release", ["5.24.0", "4.57.6", "4.52.4", "4.43.4"])
def test_records_name_the_first_release_that_lists_the_type(release):
    """A text part may be read before AutoConfig knows its type, a whole model may not."""
    order = RELEASES["transformers"].today
    wrong = [
        kind
        for kind, record in RECORDS.items()
        if record.since == release
        and (record.text is not None or f"{kind}_text" in RECORDS)
        and "thinker" not in kind
        and "talker" not in kind
        and kind not in list_types("transformers", release)
        and release in order
    ]
    assert wrong == []


def test_list_of_the_installed_transformers_is_its_own():
    transformers = pytest.importorskip("transformers")
    if transformers.__version__ not in RELEASES["transformers"].releases:
        pytest.skip("its list was not read")
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

    assert set(CONFIG_MAPPING_NAMES) == list_types("transformers", transformers.__version__)


def test_lists_name_where_they_were_read():
    file = Path(__file__).parents[2] / "rope_viz" / "runtimes" / "known_types.json"
    found = json.loads(file.read_text(encoding="utf-8"))
    assert found["_about"].keys() == found.keys() - {"_about", "unnamed"}


@for_each(sorted(RECORDS))
def test_missing_type_names_the_list_of_its_release(kind):
    """The sentence names the release and the place of its list; else the answer is not known."""
    for name in ("vllm", "sglang", "llama.cpp", "mlx-lm"):
        for release in RELEASES[name].releases:
            at = name if release in RELEASES[name].today else f"{name} {release}"
            try:
                found = emulate({"model_type": kind}, runtime=name, version=release)
            except ValueError:
                continue
            if found.supported or found.known.how != "by rule" or RECORDS[kind].runtime(at).get("file"):
                continue
            assert f"is not in {name} {release.split(' ')[0]}, " in found.known.source, (name, release)


@pytest.mark.parametrize(
    ("kind", "runtime", "file"),
    [
        ("phimoe", "llama.cpp", "phi"),  # PhiMoEForCausalLM there, PhimoeForCausalLM in transformers
        ("bailing_hybrid", "llama.cpp", "bailingmoe3"),
        ("bailing_hybrid", "vllm", "bailing_moe_v3"),
        ("bailing_hybrid", "sglang", "bailing_moe_v3"),
        ("ernie4_5", "sglang", "ernie4"),
        ("unlimited_ocr_text", "vllm", "unlimited_ocr"),
    ],
)
def test_types_are_found_under_the_names_of_published_files(kind, runtime, file):
    assert RECORDS[kind].runtime(runtime)["file"] == file
    found = emulate({"model_type": kind}, runtime=runtime)
    assert "is not in" not in found.known.source
    assert "no converter class" not in found.reason


def test_config_that_names_a_listed_class_is_not_refused():
    """codegen has no class of its own in conversion/; a config that names a class of that list gets another answer."""
    codegen = {"model_type": "codegen", "n_embd": 1024, "n_head": 16, "n_positions": 2048, "rotary_dim": 32}
    assert emulate(codegen, runtime="llama.cpp").known.how == "by rule"
    for named in ("LlamaForCausalLM", "LLaMAForCausalLM"):
        found = emulate({**codegen, "architectures": [named]}, runtime="llama.cpp")
        assert found.known.how == "not known"
        assert named in found.known.source


def test_gguf_of_unknown_architecture_is_refused(tmp_path):
    keys = {"block_count": 2, "context_length": 2048, "embedding_length": 512, "attention.head_count": 8}
    for named, supported in (("foo", False), ("llama", True)):
        path = tmp_path / f"{named}.gguf"
        write_gguf(path, named, keys)
        found = emulate(read_config(str(path)), runtime="llama.cpp")
        assert (found.supported, found.known.how == "not known") == (supported, False), named
        assert supported or found.known.source == "'foo' is not in src/llama-arch.cpp of 0c1e57098"


def test_type_whose_class_has_no_known_name_is_not_known():
    found = emulate({"model_type": "qwen2_5_omni_talker"}, runtime="sglang")
    assert (found.known.how, found.supported) == ("not known", False)


def test_ling_3_rotates_its_whole_latent_part_in_vllm():
    """bailing_moe_v3.py of vLLM 0.33.0 drops partial_rotary_factor; transformers does not read it."""
    ling = {"model_type": "bailing_hybrid", "max_position_embeddings": 8192, "partial_rotary_factor": 0.5}
    assert emulate(ling, runtime="vllm").inv_freq.size == emulate(ling, runtime="transformers").inv_freq.size == 32
