"""No answer depends on a key of a GGUF file that was not read: one key is changed or added at random."""

import json
import random

import numpy as np

from rope_viz.advice.lint import check
from rope_viz.advice.memory.estimate_memory import memory
from rope_viz.advice.memory.layer_kinds import list_layers
from rope_viz.cli.main import main
from rope_viz.models.formats.gguf_keys import LOADER
from rope_viz.models.model_config import ModelConfig
from rope_viz.runtimes import emulate
from tests.gguf_files import write_gguf
from tests.models.test_gguf_headers import ROWS, read_header
from tests.offenders import for_each

SEEDS = range(200)
KNOWN = sorted({*LOADER["general"], *LOADER["specific"], "rope.scaling.attn_factor"} - {"rope.scaling.type"})
UNKNOWN = ("rope.new.freq_base", "rope.scaling.tomorrow", "attention.layer_types", "attention.key_length_global")
# Keys that change neither frequencies nor layers nor cache in a config either, where llama.cpp reads them.
WITHOUT_EFFECT = frozenset(LOADER["silent"])


def choose(seed):
    """A type, and one key of its header with another value."""
    draw = random.Random(seed)
    kind = draw.choice(sorted(ROWS))
    keys = ROWS[kind]["keys"]
    # Without a factor a type of scaling changes nothing.
    own = [key for key in keys if key.startswith(("rope.", "attention.")) and keys[key] != "none"]
    key = draw.choice([*own, *own, *KNOWN, *UNKNOWN])
    return kind, key, other_value(draw, key, keys)


def other_value(draw, key, keys):
    """A value that the header does not have and that llama.cpp could load."""
    old, blocks = keys.get(key), keys.get("block_count", 4)
    if key == "rope.scaling.type":
        return "none"
    if key in ("attention.causal", "rope.scaling.finetuned"):
        return not (True if old is None else old)
    if key in ("attention.sliding_window_pattern", "attention.recurrent_layers", "attention.indexer.types"):
        values = [bool(draw.getrandbits(1)) for _ in range(blocks)]
        return values if values != old else [not value for value in values]
    if key == "attention.rope_pattern":
        return [False] * blocks
    if key == "attention.layer_types":
        return ["sliding_attention"] * blocks
    if key == "attention.compress_ratios":
        return [4] * blocks
    if key == "rope.dimension_sections":
        return [4, 2, 2, 0]
    if isinstance(old, list):
        return [value + 2 for value in old]
    if isinstance(old, int):
        return old * 2 or 2
    return 1.75 * old if old else (3.5 if key.startswith("rope.") and "dimension" not in key else 6)


def answer(config):
    """Everything that is said of a config, as text."""
    model = ModelConfig.read(config)
    found = {"problems": model.problems}
    if not model.problems:
        found["specs"] = {
            layer: (np.round(spec.inv_freq(), 9).tolist(), round(spec.attention_factor(), 6), spec.context)
            for layer, spec in model.specs.items()
        }
        found["llama.cpp"] = {
            layer: (np.round(one.inv_freq, 9).tolist(), round(one.attention_factor, 6)) if one.supported else one.reason
            for layer in model.specs
            for one in [emulate(model, "llama.cpp", layer_type=layer or None)]
        }
        found["layers"] = repr(list_layers(model))
    kept = memory(config, length=5000)
    found["findings"] = [(finding.rule, finding.message) for finding in check(config)]
    found["sizes"] = [config.get(f"num_{name}_heads") for name in ("attention", "key_value")]
    found["sizes"] += [config.get(name) for name in ("sliding_window", "qk_nope_head_dim", "v_head_dim")]
    found["memory"] = (
        kept["kv_cache_bytes"],
        kept["reasons"].get("kv_cache_bytes"),
        kept["groups"],
        kept["parameters"],
    )
    return json.dumps(found, default=str)


@for_each(SEEDS)
def test_changed_key_changes_the_answer_or_is_named(seed):
    kind, key, value = choose(seed)
    row = ROWS[kind]
    named = f"{row['architecture']}.{key}"
    try:
        config = read_header(row, **{key: value})
    except ValueError as error:
        refusal = str(error)
    else:
        refusal = ""
    if refusal:
        # Divisors do not fit other sizes of a head.
        assert named in refusal or "divisors" in refusal
        return
    source = config["_source_file"]
    if named in source["unread"]:
        part = key.split(".")[0]
        if part == "rope":
            assert any(named in problem for problem in ModelConfig.read(config).problems)
        else:
            found = memory(config, length=5000)
            assert found["kv_cache_bytes"] is None
            assert named in found["reasons"]["kv_cache_bytes"]
    if named in [*source["unread"], *source["ignored"]]:
        assert any(named in finding.message for finding in check(config)) or "no rotary" in str(check(config))
    elif key not in WITHOUT_EFFECT and not ("no rotary" in str(check(config)) and key.startswith("rope.")):
        assert answer(config) != answer(read_header(row)), (kind, key, value)


def test_every_command_names_an_unread_key(tmp_path, capsys):
    row = ROWS["qwen3"]
    for key in ("rope.scaling.tomorrow", "attention.tomorrow"):
        path = write_gguf(tmp_path / "a.gguf", "qwen3", {**row["keys"], key: 2.0})
        for command in (["check"], ["table"], ["runtimes"], ["memory", "--length", "1000"]):
            main((command[0], str(path), *command[1:]))
            printed = capsys.readouterr()
            assert f"qwen3.{key}" in printed.out + printed.err, (command, key)
