"""`rope-viz check` in CI: exit codes, settings and formats."""

import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from rope_viz.advice.lint.check_text import rules
from rope_viz.cli.main import main
from rope_viz.models.architecture import all_architectures
from rope_viz.models.catalog import catalog
from rope_viz.models.config_reader import has_one_axis
from rope_viz.models.several_axes.model_axes import is_encoder
from rope_viz.models.several_axes.text import all_axes
from tests.configs import llama, yarn
from tests.offenders import for_each

ROOT = Path(__file__).parents[2]
LLAMA = llama(max_position_embeddings=32768, rope_theta=5e6)
ERROR = {**LLAMA, "rope_scaling": {"rope_type": "yarn", "factor": 4.0}}
WARNING = {**LLAMA, "rope_scaling": yarn(8192, beta_fst=16)}
NOTE = {**LLAMA, "rope_theta": 10000.0}


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """Away from this project's pyproject.toml and from the cache of whoever runs the tests."""
    monkeypatch.chdir(tmp_path)
    for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))


def run(capsys, *arguments):
    code = main(("check", *arguments))
    out, err = capsys.readouterr()
    return code, out, err


def put(name, config):
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(config, indent=2))
    return str(path)


@pytest.mark.parametrize(
    ("config", "codes"),
    [(LLAMA, (0, 0, 0)), (NOTE, (0, 0, 1)), (WARNING, (0, 1, 1)), (ERROR, (2, 2, 2))],
    ids=["clean", "note", "warning", "error"],
)
def test_the_exit_code_follows_the_level_to_fail_on(capsys, config, codes):
    path = put("config.json", config)
    for level, code in zip(("error", "warning", "note"), codes, strict=True):
        assert run(capsys, path, "--fail-on", level)[0] == code
    assert run(capsys, path)[0] == codes[1]


def test_unreadable_file_has_its_own_exit_code(capsys):
    put("good/config.json", ERROR)
    Path("bad.json").write_text("{")
    for names in (("bad.json",), ("missing.json",), ("good", "bad.json"), (".",)):
        Path("config.json").write_bytes(b"\xff\xfe{}")
        code, out, _ = run(capsys, *names, "--fail-on", "error")
        assert code == 3, names
        assert "(unreadable)" in out
    assert run(capsys, "bad.json", "--ignore", "unreadable")[0] == 3


@pytest.mark.parametrize(
    "wrong",
    [
        *({"model_type": []}, {"hidden_size": "4096"}, {"rope_theta": None}),
        *({key: value} for key in ("rope_scaling", "rope_parameters") for value in ([1], 1, True, "yarn", 0.5)),
    ],
)
def test_key_of_the_wrong_type_is_an_error_not_unreadable(capsys, wrong):
    code, out, _ = run(capsys, put("config.json", {**LLAMA, **wrong}))
    assert code == 2
    assert len(out.splitlines()) >= 1


@pytest.mark.parametrize("text", ["NaN", "null", '"64"', "1e400"])
def test_useless_value_and_unreadable_file_have_different_rules(capsys, text):
    config = json.dumps({**LLAMA, "hidden_size": 0}).replace('"hidden_size": 0', f'"hidden_size": {text}')
    Path("config.json").write_text(config)
    code, out, _ = run(capsys, "config.json")
    assert (code, "(transformers-refuses)" in out, "(unreadable)" in out) == (2, True, False)
    assert run(capsys, "--explain", "transformers-refuses")[0] == 0
    Path("config.json").write_text(config[:-1])
    code, out, _ = run(capsys, "config.json")
    assert (code, "(transformers-refuses)" in out, "(unreadable)" in out) == (3, False, True)


ODD = [
    {"model_type": "qwen3_vl", "text_config": None},
    {"model_type": "qwen3_vl", "text_config": {}},
    {"model_type": "gemma3", "text_config": {"model_type": 1}, "vision_config": 4096},
    {"model_type": "gemma3", "text_config": {}, "vision_config": "siglip"},
    {"model_type": "dbrx", "attn_config": {"rope_theta": 500000.0}, "rope_scaling": {"type": {}}},
    {"model_type": "dbrx", "attn_config": {"rope_theta": 500000.0}, "rope_scaling": {"full_attention": {}}},
]


@pytest.mark.parametrize("odd", ODD, ids=json.dumps)
def test_odd_shapes_are_answered_without_a_crash(capsys, odd):
    path = put("config.json", odd)
    assert run(capsys, path)[0] in (0, 1, 2)
    for command in ("table", "runtimes"):
        assert main((command, path)) in (0, 2)
    assert main(("export", path, "--to", "vllm")) in (0, 1, 2)


def test_a_rule_can_be_left_out(capsys):
    path = put("config.json", WARNING)
    assert run(capsys, path)[0] == 1
    code, out, _ = run(capsys, path, "--ignore", "unknown-keys")
    assert (code, out) == (0, f"{path}: No problems found.\n")
    assert run(capsys, path, "--ignore", "type-keys,unknown-keys")[0] == 0
    assert run(capsys, path, "--ignore", "type-keys", "--ignore", "unknown-keys")[0] == 0


def test_settings_are_read_from_pyproject(capsys):
    path = put("models/config.json", WARNING)
    Path("pyproject.toml").write_text('[tool.rope-viz]\nfail-on = "error"\n')
    assert run(capsys, path)[0] == 0
    assert run(capsys, path, "--fail-on", "warning")[0] == 1
    Path("pyproject.toml").write_text('[tool.rope-viz]\nignore = ["unknown-keys"]\n')
    assert run(capsys, path)[1].endswith("No problems found.\n")
    Path("pyproject.toml").write_text("[tool.other]\nx = 1\n")
    assert run(capsys, path)[0] == 1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ('ignore = ["unknwn-keys"]', "unknown rule 'unknwn-keys'. Did you mean 'unknown-keys'?"),
        ('fail-on = "fatal"', "must be one of error, warning, note"),
        ("colour = 1", "unknown key 'colour'"),
        ("ignore = 3", "must be a list of rules"),
        ("fail-on = ", "pyproject.toml: "),
    ],
)
def test_a_wrong_setting_is_named(capsys, settings, message):
    Path("pyproject.toml").write_text(f"[tool.rope-viz]\n{settings}\n")
    code, out, err = run(capsys, put("config.json", LLAMA))
    assert (code, out) == (2, "")
    assert message in err


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("[tool]\nrope-viz = 3", "rope-viz"),
        ("tool = 3", "tool"),
        ("[[tool.rope-viz]]", "rope-viz"),
        ("tool = []", "tool"),
        ("tool.rope-viz = ''", "rope-viz"),
    ],
)
def test_settings_that_are_no_table_give_a_one_line_error(capsys, text, name):
    Path("pyproject.toml").write_text(text)
    code, out, err = run(capsys, put("config.json", LLAMA))
    assert (code, out) == (2, "")
    assert err == f"rope-viz: pyproject.toml: {name} must be a table, with ignore and fail-on in [tool.rope-viz]\n"


@pytest.mark.skipif(os.name == "nt", reason="Windows keeps a folder that somebody stands in")
def test_deleted_working_directory_is_reported(capsys, tmp_path, monkeypatch):
    path = str(tmp_path / put("config.json", LLAMA))
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    code, out, err = run(capsys, path)
    assert (code, out) == (2, "")
    assert err == "rope-viz: the working directory was deleted: change to one that exists\n"


def test_unknown_rule_error_suggests_the_intended_one(capsys):
    code, _, err = run(capsys, put("config.json", LLAMA), "--ignore", "factor-mismach")
    assert code == 2
    assert "Did you mean 'factor-mismatch'?" in err


@for_each(sorted(rules()))
def test_every_rule_explains_itself_with_its_source(rule, capsys):
    code, out, _ = run(capsys, "--explain", rule)
    assert code == 0
    assert out.startswith(f"{rule}\n\n")
    assert "Source: " in out


def test_an_unknown_rule_is_explained_by_the_list(capsys):
    code, _, err = run(capsys, "--explain", "nonsense")
    assert code == 2
    assert "factor-mismatch" in err


def test_folder_argument_checks_its_configs(capsys):
    put("models/a/config.json", LLAMA)
    put("models/b/config.json", WARNING)
    put("models/b/deeper/config.json", ERROR)
    put("models/node_modules/config.json", ERROR)
    put("models/a/tokenizer_config.json", {})
    code, out, _ = run(capsys, "models")
    assert code == 1
    # What lies below a model belongs to it, as the pooling of sentence transformers does.
    assert [line.split(": ")[0] for line in out.splitlines()] == ["models/a/config.json", "models/b/config.json"]
    assert [one["file"] for one in json.loads(run(capsys, "models", "--json")[1])] == [
        "models/a/config.json",
        "models/b/config.json",
    ]
    assert run(capsys, "models/b")[0] == 1
    Path("empty").mkdir()
    code, out, _ = run(capsys, "empty")
    assert code == 3
    assert "no config.json in this folder" in out


def cached(folder, id, config, commit="c0ffee", reference="main"):
    place = Path(folder, "--".join(("models", *id.split("/"))))
    if reference:
        (place / "refs").mkdir(parents=True, exist_ok=True)
        (place / "refs" / reference).write_text(commit)
    put(place / "snapshots" / commit / "config.json", config)


def test_cached_model_is_found_by_its_id(capsys, monkeypatch, tmp_path):
    cached("hf/hub", "Qwen/Qwen3-8B", WARNING)
    cached("hf/hub", "Qwen/Qwen3-8B", LLAMA, "deadbeef", "v2")
    cached("hf/hub", "gpt2", {"model_type": "gpt2"})
    assert run(capsys, "Qwen/Qwen3-8B")[0] == 1
    assert run(capsys, "Qwen/Qwen3-8B@v2")[0] == 0
    assert run(capsys, "Qwen/Qwen3-8B@deadbeef")[0] == 0
    assert run(capsys, "Qwen/Qwen3-8B@v3")[0] == 3
    assert "has no rotary embedding" in run(capsys, "gpt2")[1]
    cached("other", "org/model", ERROR, reference=None)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "other"))
    assert run(capsys, "org/model")[0] == 2
    code, out, _ = run(capsys, "nobody/nothing")
    assert code == 3
    assert "local Hugging Face cache" in out
    assert main(("table", "Qwen/Qwen3-8B")) == 0


@pytest.mark.parametrize(
    ("page", "code"),
    [
        ("", 1),
        ("/", 1),
        ("@v2", 0),
        ("?library=transformers", 1),
        ("/tree/main", 1),
        ("/blob/main/config.json", 1),
        ("/raw/main/config.json#L3", 1),
        ("/resolve/v2/config.json?download=true", 0),
        ("/tree/refs%2Fpr%2F1/", 0),
        ("/blob/v3/config.json", 3),
        ("/blob/../config.json", 3),
    ],
)
def test_hub_url_selects_its_model(capsys, page, code):
    cached("hf/hub", "Qwen/Qwen3-8B", LLAMA, "deadbeef", "v2")
    (Path("hf/hub/models--Qwen--Qwen3-8B/refs/refs/pr")).mkdir(parents=True)
    Path("hf/hub/models--Qwen--Qwen3-8B/refs/refs/pr/1").write_text("deadbeef")
    cached("hf/hub", "Qwen/Qwen3-8B", WARNING)
    cached("hf/hub", "gpt2", {"model_type": "gpt2"})
    assert run(capsys, f"https://huggingface.co/Qwen/Qwen3-8B{page}")[0] == code
    assert run(capsys, "https://huggingface.co/gpt2/tree/main")[0] == 0


def test_broken_cache_reference_is_named(capsys):
    cached("hf/hub", "a/b", LLAMA)
    place = Path("hf/hub/models--a--b/refs/main")
    place.write_bytes(b"\xff\xfe")
    code, out, _ = run(capsys, "a/b")
    assert code == 3
    assert f"{place.resolve()} does not name a commit: delete it" in out


@pytest.mark.parametrize("name", ["HF_HOME", "HF_HUB_CACHE", "XDG_CACHE_HOME"])
@pytest.mark.parametrize("value", ["~nouser-here/x", "~/x", ""])
def test_a_user_without_a_home_finds_no_cache_and_no_error(capsys, monkeypatch, name, value):
    """A container's user is often a number alone, without a line in /etc/passwd and without HOME."""
    pwd = pytest.importorskip("pwd")

    def unknown(_):
        raise KeyError("no such user")

    for function in ("getpwuid", "getpwnam"):
        monkeypatch.setattr(pwd, function, unknown)
    for other in ("HOME", "HF_HOME"):
        monkeypatch.delenv(other, raising=False)
    monkeypatch.setenv(name, value)
    code, out, err = run(capsys, "a/b")
    assert (code, err) == (3, "")
    assert "no such model in the list or in the local Hugging Face cache" in out
    assert main(("table", "a/b")) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


@pytest.mark.parametrize("id", ["../../etc", "..", "a/b/c", "a\\b", ""])
def test_id_never_leads_outside_the_cache(capsys, id):
    cached("hf/hub", "a/b", LLAMA)
    assert run(capsys, id)[0] == 3 or Path(id).is_dir()


def test_sarif_names_the_rule_the_level_and_the_line(capsys):
    path = put("a model/config.json", WARNING)
    code, out, _ = run(capsys, path, "--sarif")
    assert code == 1
    document = json.loads(out)
    assert document["version"] == "2.1.0"
    (one,) = document["runs"]
    (result,) = one["results"]
    driver = one["tool"]["driver"]
    assert driver["rules"][result["ruleIndex"]]["id"] == result["ruleId"] == "unknown-keys"
    assert result["level"] == "warning"
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "a%20model/config.json"
    line = Path(path).read_text().splitlines()[place["region"]["startLine"] - 1]
    assert line[place["region"]["startColumn"] - 1 :].startswith('"beta_fst"')


def test_sarif_covers_unreadable_files_and_no_findings(capsys):
    Path("bad.json").write_text("{")
    code, out, _ = run(capsys, "bad.json", put("good.json", LLAMA), "--format", "sarif")
    assert code == 3
    (result,) = json.loads(out)["runs"][0]["results"]
    assert (result["ruleId"], result["level"]) == ("unreadable", "error")
    assert json.loads(run(capsys, "good.json", "--sarif")[1])["runs"][0]["results"] == []


def test_standard_input_is_read_as_bytes(capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\xef\xbb\xbf" + json.dumps(LLAMA).encode())))
    code, out, _ = run(capsys, "-")
    assert code == 2
    assert "(byte-order-mark)" in out


# What is warned of rightly. mlx-lm does not read the keys of NVIDIA's file; llama.cpp and mlx-lm not Laguna's factor.
TRUE_WARNINGS = {"kimi-k2.7-code": ["runtimes-differ"], "laguna-xs.2": ["attention-factor"]}


@for_each(list(catalog()))
def test_published_configs_get_no_false_warning(id, capsys):
    """Yi, Mistral and the others chose their base, InternLM its dynamic scaling, Ministral its pair of mscale."""
    code, out, _ = run(capsys, id)
    warned = re.findall(r": warning: .*\((\S+)\)$", out, re.MULTILINE)
    assert (code, warned) == (bool(id in TRUE_WARNINGS), TRUE_WARNINGS.get(id, [])), out


def test_check_needs_numpy_alone_and_loads_little():
    code = (
        "import sys\n"
        "class Only:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] in ('streamlit', 'plotly', 'torch', 'pandas', 'scipy', 'matplotlib'):\n"
        "            raise ImportError(name)\n"
        "sys.meta_path.insert(0, Only())\n"
        "from rope_viz.cli.main import main\n"
        "code = main(['check', 'llama-3-8b'])\n"
        "ours = [name for name in sys.modules if name.startswith('rope_viz.')]\n"
        "assert not [name for name in ours if name.split('.')[1] in ('figures', 'ui', 'kernels', 'pictures')], ours\n"
        "raise SystemExit(code)"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert (done.returncode, done.stdout) == (0, "llama-3-8b: No problems found.\n"), done.stderr


@pytest.mark.parametrize("name", ["", " ", "missing.json", "bad.json"])
def test_unreadable_file_cannot_be_repaired_or_checked(capsys, name):
    put("config.json", WARNING)
    Path("bad.json").write_text("{")
    assert run(capsys, name)[0] == 3
    code, out, err = run(capsys, name, "--repair")
    assert (code, out, len(err.splitlines())) == (3, "", 1)


def test_single_axis_check_does_not_import_multi_axis():
    program = (
        "import sys; from rope_viz.advice.lint import check; "
        f"check({WARNING!r});"
        "print([name for name in sys.modules if name.startswith(('rope_viz.multi_axis', 'rope_viz.studies'))])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout == "[]\n"


def test_single_axis_types_are_disjoint_from_multi_axis_types():
    one_axis = {kind for kind in all_architectures() if has_one_axis({"model_type": kind})}
    assert len(one_axis) > 150
    assert not one_axis & {*all_axes(), *(f"{kind}_text" for kind in all_axes())}
    assert not any(is_encoder(kind, {}) for kind in one_axis)
    assert has_one_axis(WARNING)
    assert not has_one_axis({**WARNING, "rope_scaling": {"rope_type": "default", "mrope_section": [24, 20, 20]}})


def test_repair_exits_as_a_check_of_its_output(capsys, tmp_path):
    config = {"model_type": "llama", "rope_scaling": {"rope_type": "yarn", "factor": "four"}}
    (tmp_path / "broken.json").write_text(json.dumps(config))
    code, out, err = run(capsys, str(tmp_path / "broken.json"), "--repair")
    (tmp_path / "repaired.json").write_text(out)
    checked, text, _ = run(capsys, str(tmp_path / "repaired.json"))
    assert code == checked == 2
    assert "not repaired" in err
    assert all(line.split(": ", 1)[1] in err for line in text.splitlines())


def test_repair_of_almost_json_tells_what_it_repaired(capsys):
    text = json.dumps(WARNING, indent=1)
    Path("broken.json").write_text("# mine\n" + text.replace('"model_type"', "'model_type'")[:-2] + ",\n}")
    code, out, err = run(capsys, "broken.json", "--repair")
    Path("repaired.json").write_text(out)
    Path("config.json").write_text(text)
    assert out == run(capsys, "config.json", "--repair")[1]
    assert code == run(capsys, "repaired.json")[0]
    last = text.count("\n") + 1
    assert err.splitlines()[0] == (
        f"rope-viz: broken.json: repaired the JSON syntax: 1 trailing comma (line {last}), 1 comment (line 1), "
        "1 text without double quotes (line 3)"
    )
    assert run(capsys, "broken.json")[0] == 3


@pytest.mark.parametrize("text", ["{", "<html></html>", '{"a": 1,', "{'a': None}"])
def test_repair_refuses_what_needs_more_than_syntax(capsys, text):
    Path("broken.json").write_text(text)
    code, out, err = run(capsys, "broken.json", "--repair")
    assert (code, out, len(err.splitlines())) == (3, "", 1)
    assert "it is not JSON" in err
