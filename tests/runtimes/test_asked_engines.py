"""Whole engines that were asked: the goldens, the data that the package carries, and where it is shown."""

import json
import re
import runpy
from pathlib import Path

import pytest

from rope_viz.cli.main import main
from rope_viz.probe.ask_probe import ENGINES
from rope_viz.runtimes import emulate
from rope_viz.runtimes.asked_engines import describe_asked, list_asked
from rope_viz.runtimes.provenance import executed_counts
from tests.offenders import for_each

ROOT = Path(__file__).parents[2]
ANSWERS = json.loads((ROOT / "tests/goldens/asked.json").read_text())["rows"]
CONFIGS = json.loads((ROOT / "tools/engines/configs.json").read_text())["configs"]
VERDICTS = ("as intended", "something else", "none of these", "cannot tell")


@for_each(ANSWERS)
def test_an_answer_names_engine_release_config_and_date(row):
    assert row["engine"] in ENGINES
    assert row["config"] in CONFIGS
    assert row["release"][0].isdigit()
    assert row["date"].startswith("20")
    if "error" in row:
        assert row["error"]
    else:
        assert row["verdict"] in VERDICTS
        assert row["by"] in ("server", "process")
        assert row["verdict"] in ("none of these", "cannot tell") or row["hypothesis"] or row["rules"]
        assert row["next_distance"] is None or row["distance"] < row["next_distance"]


def test_the_package_carries_what_the_goldens_say():
    rows = runpy.run_path(str(ROOT / "tests/goldens/make_asked.py"))["list_rows"]()
    assert sorted(rows) == sorted(list(vars(one).values()) for one in list_asked())


def test_the_document_has_the_table_of_engines():
    lines = runpy.run_path(str(ROOT / "tests/goldens/make_asked.py"))["make_table"]()
    assert "\n".join(lines) in (ROOT / "docs" / "probe.md").read_text()


def test_a_question_is_asked_once():
    keys = [(row["engine"], row["release"], row["config"]) for row in ANSWERS]
    assert len(keys) == len(set(keys))


def test_asked_is_never_added_to_executed():
    config = CONFIGS["llama-yarn"]["config"]
    found = emulate(config, "vllm").known
    assert found.how == "executed"
    assert {one.scaling for one in found.asked} == {"yarn"}
    assert describe_asked(found.asked) == "asked in 0.32.0"
    assert emulate(config, "vllm", version="0.8.5").known.asked == ()
    assert emulate({**config, "model_type": "aria_text"}, "vllm").known.asked == ()
    # Of the releases that were asked, only the code of DeepSeek V4 was executed.
    assert all(count == 1 for name, version, count in executed_counts() if (name, version) == ("vllm", "0.32.0"))


def test_an_answer_about_old_keys_says_nothing_of_new_ones():
    old, new = CONFIGS["llama-yarn"]["config"], CONFIGS["llama-yarn-new-keys"]["config"]
    by_keys = {name: emulate(one, "mlx-lm").known.asked for name, one in (("old", old), ("new", new))}
    assert {one.verdict for one in by_keys["old"]} == {"as intended"}
    assert "something else" in {one.verdict for one in by_keys["new"]}


def test_the_command_says_which_engines_were_asked(tmp_path, capsys):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(CONFIGS["llama-yarn"]["config"]))
    assert main(["runtimes", str(path)]) == 0
    line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("vllm"))
    assert "executed, asked in" in line
    assert main(["runtimes", str(path), "--json"]) == 0
    row = next(row for row in json.loads(capsys.readouterr().out) if row["runtime"] == "vllm")
    assert row["known"] == "executed"
    assert {"release": "0.32.0", "date": "2026-11-27", "config": "llama-yarn", "verdict": "as intended"} in row["asked"]


@pytest.mark.parametrize(
    ("name", "runtime", "words"),
    [
        ("cohere2-windows", "vllm", "asked in 0.32.0, with cohere2-windows: none of these"),
        ("phi3-longrope", "vllm", "asked in 0.32.0, with phi3-longrope: something else"),
        ("llama-partial", "mlx-lm", "asked in 0.32.2"),
    ],
)
def test_other_answers_than_the_intended_are_shown(name, runtime, words, capsys, tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(CONFIGS[name]["config"]))
    assert main(["runtimes", str(path)]) == 0
    (line,) = [row for row in capsys.readouterr().out.splitlines() if row.startswith(f"{runtime} ") and "asked" in row]
    assert re.search(rf"\b{re.escape(words)}(  |$)", line)
