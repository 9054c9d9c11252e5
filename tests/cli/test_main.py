"""The command line answers in numbers, in JSON and in exit codes."""

import argparse
import dataclasses
import io
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from rope_viz.advice.plan.export import TARGETS
from rope_viz.cli.main import COMMANDS, main, make_parser
from rope_viz.cli.spec import flag
from rope_viz.embedding.scaling import METHODS, Linear, Yarn
from rope_viz.embedding.spec import RopeSpec, knobs
from rope_viz.models.catalog import catalog, model_specs
from rope_viz.models.edit_config import merge_dicts
from rope_viz.models.model_config import from_config
from rope_viz.models.spec_url import method_knobs
from rope_viz.runtimes import RUNTIMES
from tests.configs import FAULTY_QWEN3, yarn


@pytest.fixture
def faulty(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(FAULTY_QWEN3))
    return str(path)


def run(capsys, *arguments):
    code = main(arguments)
    out, err = capsys.readouterr()
    return code, out, err


def test_the_table_holds_the_frequencies_of_the_model(capsys):
    code, out, _ = run(capsys, "table", "llama-3.1-8b", "--csv")
    rows = np.array([[float(word) for word in line.split(",")] for line in out.splitlines()[1:]])
    spec = model_specs("llama-3.1-8b")[""]
    assert code == 0
    np.testing.assert_array_equal(rows[:, 1], spec.inv_freq())
    np.testing.assert_allclose(rows[:, 2], 2 * np.pi / spec.inv_freq(), rtol=1e-15)
    np.testing.assert_allclose(rows[:, 3], spec.context / (2 * np.pi / spec.inv_freq()), rtol=1e-14)


def test_table_as_json_holds_columns_and_remarks(capsys, tmp_path):
    code, out, _ = run(capsys, "table", "llama-3.1-8b", "--json")
    found = json.loads(out)
    assert code == 0
    assert len(found["inv_freq"]) == len(found["turns"]) == 64
    assert (found["inv_freq"][0], found["attention_factor"], found["remarks"]) == (1.0, 1.0, [])
    unlisted = tmp_path / "config.json"
    unlisted.write_text('{"model_type": "nobody", "hidden_size": 64, "num_attention_heads": 4, "n_positions": 64}')
    code, out, _ = run(capsys, "table", str(unlisted), "--json")
    assert "is unknown" in json.loads(out)["remarks"][0]
    unlisted.write_text('{"model_type": "gpt2"}')
    code, out, _ = run(capsys, "table", str(unlisted), "--json")
    assert (code, json.loads(out)["rope"]) == (0, False)


def test_flags_change_the_spec_as_the_knobs_do(capsys):
    arguments = (
        "table --csv --head-dim 64 --base 5e5 --context 8k --target 32k --scaling yarn --beta-fast 16 --no-truncate"
    )
    _, out, _ = run(capsys, *arguments.split())
    spec = RopeSpec(64, base=5e5, context=8192, target=32768, scaling=METHODS["yarn"](4.0, 16.0, truncate=False))
    found = [float(line.split(",")[1]) for line in out.splitlines()[1:]]
    np.testing.assert_array_equal(found, spec.inv_freq())


def test_every_knob_has_a_flag():
    help_text = make_parser(["table"]).parse_args(["table"])
    for name in (*knobs(RopeSpec), *method_knobs()):
        assert hasattr(help_text, name)
        assert flag(name).startswith("--")


@pytest.mark.parametrize("method", METHODS)
def test_every_method_has_a_table(capsys, method):
    code, out, err = run(capsys, "table", "--scaling", method, "--context", "4k", "--target", "16k")
    assert (code, err) == (0, "")
    assert len(out.splitlines()) == 67


def test_exit_code_of_check_follows_the_severity(capsys, faulty, tmp_path):
    assert run(capsys, "check", "llama-3-8b")[0] == 0
    assert run(capsys, "check", "qwen3-8b")[0] == 0  # a note
    warned = {**FAULTY_QWEN3, "rope_scaling": yarn(32768)}
    (tmp_path / "warned.json").write_text(json.dumps(warned))
    assert run(capsys, "check", str(tmp_path / "warned.json"))[0] == 1  # the factor is not the ratio
    assert run(capsys, "check", faulty)[0] == 2
    assert run(capsys, "check", "llama-3-8b", faulty, str(tmp_path / "warned.json"))[0] == 2
    (tmp_path / "broken.json").write_text("{")
    assert run(capsys, "check", str(tmp_path / "broken.json"))[0] == 3


def test_check_prints_one_line_per_finding(capsys, faulty):
    _, out, _ = run(capsys, "check", faulty)
    assert "error: rope_scaling: original_max_position_embeddings is missing" in out
    assert "[frequencies up to x1.176, pair 40] (missing-original)" in out
    assert all(line.startswith(f"{faulty}: ") for line in out.splitlines())
    assert run(capsys, "check", "llama-3-8b")[1] == "llama-3-8b: No problems found.\n"


def test_check_in_json_holds_the_repaired_config(capsys, faulty):
    _, out, _ = run(capsys, "check", "--json", faulty)
    report = json.loads(out)
    first = report["findings"][0]
    assert (first["rule"], first["effect"]["pair"]) == ("missing-original", 40)
    assert first["repaired"]["rope_scaling"]["original_max_position_embeddings"] == 32768
    assert len(json.loads(run(capsys, "check", "--json", faulty, "llama-3-8b")[1])) == 2


def test_a_repaired_config_is_clean(capsys, faulty, tmp_path):
    code, out, _ = run(capsys, "check", "--repair", faulty)
    (tmp_path / "repaired.json").write_text(out)
    assert code == 0
    assert run(capsys, "check", str(tmp_path / "repaired.json"))[0] == 0


def test_config_is_read_from_standard_input(capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps(FAULTY_QWEN3)))
    assert run(capsys, "check", "-")[0] == 2


def test_compare_lists_every_method_that_extends(capsys):
    code, out, _ = run(capsys, "compare", "qwen3-8b", "--context", "32k", "--target", "128k")
    assert code == 0
    extending = {name for name, method in METHODS.items() if method.extends}
    assert {line.split()[0] for line in out.splitlines()[2:]} == extending
    rows = json.loads(run(capsys, "compare", "qwen3-8b", "--target", "128k", "--json")[1])
    yarn = next(row for row in rows if row["method"] == "yarn")
    assert yarn["config"]["rope_parameters"]["rope_type"] == "yarn"


def test_runtimes_lists_every_runtime_and_the_deciding_rule(capsys):
    code, out, _ = run(capsys, "runtimes", "kimi-k2-instruct")
    assert code == 0
    assert len(out.splitlines()) == len(RUNTIMES) + 1
    line = next(line for line in out.splitlines() if line.startswith("llama.cpp"))
    assert "x8.93 pair 19" in line
    assert "betas-ignored" in line
    rows = json.loads(run(capsys, "runtimes", "phi-4-mini", "--length", "4097", "--json")[1])
    assert {row["runtime"] for row in rows if not row["agrees"]} == {"sglang", "transformers"}


@pytest.mark.parametrize("target", TARGETS)
def test_export_prints_what_to_copy(capsys, target):
    arguments = ("qwen3-8b", "--context", "32k", "--target", "128k", "--scaling", "yarn", "--to", target)
    code, out, err = run(capsys, "export", *arguments)
    assert (code, err) == (0, "")
    assert "yarn" in out


def test_unfaithful_export_is_explained_and_exits_with_1(capsys):
    code, out, err = run(capsys, "export", "--scaling", "dynamic", "--to", "vllm")
    assert code == 1
    assert shlex.split(out)[0] == "--hf-overrides"
    assert "dynamic is static" in err
    assert len(err.splitlines()) == 1


@pytest.fixture
def gpt2(tmp_path):
    path = tmp_path / "gpt2.json"
    path.write_text(json.dumps({"model_type": "gpt2", "n_embd": 768, "n_head": 12, "n_positions": 1024}))
    return str(path)


@pytest.mark.parametrize("command", ["check", "table", "runtimes", "compare", "export --to vllm"])
def test_model_without_rope_gives_one_sentence(capsys, gpt2, command):
    code, out, err = run(capsys, *command.split(), gpt2)
    assert (code, err) == (0, "")
    assert len(out.splitlines()) == 1
    assert "gpt2 has no rotary embedding: it adds learned position vectors" in out


def test_model_without_rope_is_reported_in_json_and_tables(capsys, gpt2, tmp_path):
    for command in ("runtimes", "compare"):
        code, out, _ = run(capsys, command, gpt2, "--json")
        assert (code, json.loads(out)["rope"]) == (0, False)
    assert [one["severity"] for one in json.loads(run(capsys, "check", "--json", gpt2)[1])["findings"]] == ["note"]
    code, out, err = run(capsys, "table", gpt2, "--csv")
    assert (code, out) == (0, "")
    assert "has no rotary embedding" in err
    # No figure can be drawn, and whoever waits for the file must know.
    code, out, err = run(capsys, "figure", "frequencies/wavelengths", gpt2, "-o", str(tmp_path / "x.svg"))
    assert (code, out) == (2, "")
    assert "has no rotary embedding" in err


@pytest.fixture
def unlisted(tmp_path):
    path = tmp_path / "unlisted.json"
    path.write_text(json.dumps({**FAULTY_QWEN3, "model_type": "nobody_knows", "rope_scaling": None, "rotary_dim": 64}))
    return str(path)


def test_unlisted_type_is_flagged_by_every_command(capsys, unlisted):
    for command in ("check", "table", "runtimes"):
        code, out, _ = run(capsys, command, unlisted)
        assert code == 0
        assert "'nobody_knows' is unknown. It is read by general rules with its keys rotary_dim" in out
    for arguments in (("table", unlisted, "--csv"), ("export", unlisted, "--to", "vllm")):
        assert "'nobody_knows' is unknown" in run(capsys, *arguments)[2]


def test_evidence_of_an_answer_is_in_the_table_and_in_json(capsys, unlisted):
    out = run(capsys, "runtimes", "llama-3-8b")[1]
    assert "agrees                executed" in next(line for line in out.splitlines() if line.startswith("vllm"))
    assert "agrees (by rule)" in next(line for line in out.splitlines() if line.startswith("tensorrt-llm"))
    rows = json.loads(run(capsys, "runtimes", "llama-3-8b", "--json")[1])
    assert {row["known"] for row in rows} == {"executed", "by rule"}
    assert all("tests/goldens/" in row["source"] for row in rows if row["known"] == "executed")
    rows = json.loads(run(capsys, "runtimes", unlisted, "--json")[1])
    assert {(row["known"], row["verdict"], row["agrees"]) for row in rows} == {("not known", "not known", None)}
    assert "how vllm reads this is not known" in run(capsys, "export", unlisted, "--to", "vllm")[2]


def test_models_lists_the_catalog(capsys):
    _, out, _ = run(capsys, "models")
    assert [line.split()[0] for line in out.splitlines()[1:]] == list(catalog())
    assert {model["id"] for model in json.loads(run(capsys, "models", "--json")[1])} == set(catalog())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("table no-such-model", "no such file, and no such model"),
        ("table --scaling yarn --alpha 2", "the method yarn has no --alpha"),
        ("table --head-dim 7", "head_dim must be even"),
        ("table --scaling linear --factor 0", "factor must be at least 1e-09"),
        ("table gemma-3-1b --layer global", "layer must be one of"),
        ("table --scaling longrope --short-factor 1,x", "LongRoPE factors must be numbers"),
        ("compare --target 0.5", "target"),
        ("check --repair a b", "--repair takes one file"),
    ],
)
def test_bad_input_gives_one_line_and_exit_code_2(capsys, arguments, message):
    code, out, err = run(capsys, *arguments.split())
    assert (code, out) == (2, "")
    assert message in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "3", '{"a": 1', "[" * 100_000, "1" * 5000, '"\\ud800"'])
def test_file_that_is_no_config_gives_a_one_line_error(capsys, tmp_path, text):
    path = tmp_path / "config.json"
    path.write_text(text)
    for command in ("table", "runtimes"):
        code, _, err = run(capsys, command, str(path))
        assert code == 2
        assert len(err.splitlines()) == 1


def test_binary_or_huge_file_gives_a_one_line_error(capsys, tmp_path):
    path = tmp_path / "model.bin"
    path.write_bytes(b"\xff\xfe" * 10)
    assert "not JSON" in run(capsys, "table", str(path))[2]
    path.write_bytes(b" " * (5 << 20))
    assert "larger than 4 MiB" in run(capsys, "table", str(path))[2]


def test_unknown_flag_exits_with_2():
    with pytest.raises(SystemExit) as exit:
        main(["table", "--base", "big"])
    assert exit.value.code == 2


def test_package_runs_as_a_module():
    command = [sys.executable, "-m", "rope_viz", "check", "llama-3-8b"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2])
    assert done.stdout == "llama-3-8b: No problems found.\n"


def test_the_command_line_needs_no_server_and_no_torch():
    code = "import sys, rope_viz.cli.main; print(sorted({'streamlit', 'torch', 'plotly'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


LOADED = """
import contextlib, sys
from rope_viz.cli.main import main
with contextlib.suppress(SystemExit), open(sys.argv[1], "w") as nowhere, contextlib.redirect_stdout(nowhere):
    main(sys.argv[2:])
print(*sys.modules)
"""


def modules_loaded_by(*arguments):
    command = [sys.executable, "-c", LOADED, os.devnull, *arguments]
    return set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())


@pytest.mark.parametrize("argument", ["--version", "--help"])
def test_version_and_help_load_no_command_and_no_numpy(argument):
    loaded = modules_loaded_by(argument)
    own = {name for name in loaded if name.startswith("rope_viz.")}
    modules = "outside_text texts numbers languages".split()
    printing = {"rope_viz.texts", *(f"rope_viz.texts.{name}" for name in modules)}
    assert own == {"rope_viz.cli", "rope_viz.cli.main", "rope_viz.cli.broken_pipe"} | printing
    assert "numpy" not in loaded


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_a_command_loads_at_most_one_other_command(name):
    """Some commands use the helpers of another one."""
    loaded = modules_loaded_by(name, "--help")
    commands = {f"rope_viz.cli.{module}" for module, _, _ in COMMANDS.values()}
    assert f"rope_viz.cli.{COMMANDS[name][0]}" in loaded
    assert len(loaded & commands) <= 2
    assert loaded.isdisjoint({"streamlit", "uvicorn", "torch", "matplotlib", "plotly"})


def list_parsers(parser):
    """Yield a parser and those of its subcommands."""
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                yield from list_parsers(inner)


@pytest.mark.parametrize("name", COMMANDS)
def test_argument_that_promises_hub_has_the_flag(name):
    """`NAMES`, the help of an argument that takes the name of a config, says that --hub fetches it."""
    for parser in list_parsers(make_parser([name])):
        with_flag = any("--hub" in action.option_strings for action in parser._actions)
        promised = any("--hub" in str(action.help) for action in parser._actions)
        assert with_flag or not promised, parser.prog


@pytest.mark.parametrize(("name", "threads"), [("check", "1"), ("search", "1"), ("capture", None), ("app", None)])
def test_light_commands_have_one_thread_of_blas(name, threads):
    code = "import os, sys; import rope_viz.cli.main; print(os.environ.get('OPENBLAS_NUM_THREADS'))"
    environment = {key: value for key, value in os.environ.items() if key != "OPENBLAS_NUM_THREADS"}
    command = [sys.executable, "-c", code, name]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(threads)


GEMMA3 = {
    "model_type": "gemma3",
    "text_config": {"model_type": "gemma3_text", "rope_scaling": {"rope_type": "linear", "factor": 8.0}},
    "vision_config": {"hidden_size": 1152},
}


@pytest.fixture
def gemma3(tmp_path):
    path = tmp_path / "gemma3.json"
    path.write_text(json.dumps(GEMMA3))
    return str(path)


@pytest.mark.parametrize("target", ["transformers", "transformers-4", "mlx-lm"])
def test_export_prints_the_users_whole_config(capsys, gemma3, target):
    code, out, err = run(capsys, "export", gemma3, "--scaling", "yarn", "--target", "256k", "--to", target)
    written = json.loads(out)
    assert code == 0
    assert written.keys() == GEMMA3.keys()
    assert written["vision_config"] == GEMMA3["vision_config"]
    found = from_config(written)
    assert found["full_attention"].scaling == Yarn(2.0)
    assert found["sliding_attention"] == dataclasses.replace(from_config(GEMMA3)["sliding_attention"], **LONGER)
    assert "changes the layers of type full_attention; those of type sliding_attention do not change" in err


LONGER = {"context": 262144, "target": 262144}


def test_removed_key_is_null_in_the_exported_merge_patch(capsys, gemma3):
    """JSON merge patch, RFC 7386: null removes a member."""
    out = run(capsys, "export", gemma3, "--scaling", "yarn", "--target", "256k", "--to", "transformers")[1]
    assert json.loads(out)["text_config"]["rope_scaling"] is None
    assert from_config(merge_dicts(json.loads(out), GEMMA3))["full_attention"].scaling == Yarn(2.0)


def test_key_that_must_not_be_null_is_left_out(capsys, tmp_path):
    nested = {"full_attention": {"rope_type": "default"}, "sliding_attention": {"rope_type": "default"}}
    text = {"model_type": "gemma4_text", "rope_scaling": nested, "max_position_embeddings": 8192}
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "gemma4", "text_config": text}))
    asked = ["export", str(tmp_path), "--to", "transformers", "--layer", "sliding_attention"]
    assert main([*asked, "--scaling", "linear", "--factor", "2"]) == 0
    whole = json.loads(capsys.readouterr().out)
    assert "rope_scaling" not in whole["text_config"]
    assert from_config(whole)["sliding_attention"].scaling == Linear(2.0)


def test_export_with_changes_prints_only_the_changes(capsys, gemma3):
    arguments = ("export", gemma3, "--scaling", "yarn", "--target", "256k", "--to", "transformers", "--changes")
    written = json.loads(run(capsys, *arguments)[1])
    assert written.keys() == {"text_config"}
    assert written["text_config"].keys() == {"max_position_embeddings", "rope_scaling", "rope_parameters"}


def test_export_as_json_names_changed_layers_and_fidelity(capsys, gemma3):
    arguments = ("export", gemma3, "--scaling", "yarn", "--target", "256k", "--to", "vllm", "--json")
    made = json.loads(run(capsys, *arguments)[1])
    assert (made["faithful"], made["changed"], made["kept"]) == (True, ["full_attention"], ["sliding_attention"])
    assert json.loads(shlex.split(made["text"])[1]).keys() == {"text_config"}


def test_export_warns_when_other_layers_change_too(capsys, tmp_path):
    """ModernBERT in transformers 4 has one rope_scaling for both layer types."""
    path = tmp_path / "modernbert.json"
    path.write_text(json.dumps({"model_type": "modernbert"}))
    arguments = ("export", str(path), "--scaling", "linear", "--target", "16k", "--to", "transformers-4")
    code, _, err = run(capsys, *arguments)
    assert code == 1
    assert "changes the layers of type full_attention and sliding_attention" in err
    assert "it also changes the sliding_attention layers" in err


def test_warns_when_a_method_rotates_zero_frequency_pairs(capsys):
    arguments = ("export", "gemma-4-full", "--target", "512k", "--to", "transformers")
    assert "all rotate" in run(capsys, *arguments, "--scaling", "yarn")[2]
    assert "all rotate" not in run(capsys, *arguments, "--scaling", "proportional")[2]


def test_export_retains_the_other_keys_of_the_same_method(capsys):
    """DeepSeek V3 with YaRN from 4k to 320k: its mscale pair and bands are its own."""
    out = run(capsys, "export", "deepseek-v3", "--scaling", "yarn", "--target", "320k", "--to", "transformers")[1]
    rope = json.loads(out)["rope_parameters"]
    assert (rope["factor"], rope["mscale"], rope["mscale_all_dim"]) == (80.0, 1.0, 1.0)


def test_compare_writes_methods_into_the_text_part(capsys, gemma3):
    rows = json.loads(run(capsys, "compare", gemma3, "--length", "256k", "--json")[1])
    configs = [row["config"] for row in rows if row["config"]]
    assert configs
    assert all(config.keys() == {"text_config"} for config in configs)
