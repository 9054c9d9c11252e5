"""Shards of an evaluation merge into the file of one run, and a missing or foreign one is named."""

import json

import pytest

from rope_viz.cli.main import main
from rope_viz.evaluation.run_evaluation import EvaluationPlan
from tests.tiny_lm.completion_servers import passkey_servers

FLAGS = ["--lengths", "400,800", "--depths", "3", "--repeats", "2"]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The file of a run in one piece, and those of its three shards."""
    folder = tmp_path_factory.mktemp("shards")
    with passkey_servers(1) as (server,):
        words = ["evaluate", "--server", f"none={server.url}", "--server", f"yarn={server.url}", *FLAGS]
        assert main([*words, "-o", str(folder / "whole.json")]) == 0
        for number in range(3):
            assert main([*words, "--shard", f"{number}/3", "-o", str(folder / f"{number}.json")]) == 0
    return folder


def merge(names, out, capsys):
    """Merge and return the exit code and the error."""
    code = main(["evaluate", "merge", *map(str, names), "-o", str(out)])
    return code, capsys.readouterr().err


def test_shards_ask_every_question_once_and_share_the_cost():
    plan = EvaluationPlan(("a", "b"), (100, 900), (0.0, 0.5, 1.0), repeats=5)
    shards = [
        EvaluationPlan(plan.methods, plan.lengths, plan.depths, repeats=5, shard=(number, 7)) for number in range(7)
    ]
    assert sorted(cell for shard in shards for cell in shard.cells()) == sorted(plan.cells())
    assert sum(shard.size for shard in shards) == plan.size == 60
    assert max(shard.tokens for shard in shards) - min(shard.tokens for shard in shards) <= 900


def test_merged_shards_equal_the_run_in_one_piece(files, tmp_path, capsys):
    out = tmp_path / "merged.json"
    assert merge([files / f"{number}.json" for number in (2, 0, 1)], out, capsys) == (0, "")
    assert out.read_bytes() == (files / "whole.json").read_bytes()


def test_a_missing_shard_is_named(files, tmp_path, capsys):
    code, error = merge([files / "0.json", files / "2.json"], tmp_path / "out.json", capsys)
    assert (code, "missing: 1/3" in error) == (2, True)
    assert not (tmp_path / "out.json").exists()


def test_a_double_shard_is_named(files, tmp_path, capsys):
    copy = tmp_path / "copy.json"
    copy.write_bytes((files / "1.json").read_bytes())
    _, error = merge([files / "1.json", copy, files / "0.json"], tmp_path / "out.json", capsys)
    assert "1.json and " in error
    assert "copy.json are both shard 1/3" in error


def edit(change):
    """Return a function that edits the content of a shard."""

    def apply(content):
        change(content)
        return content

    return apply


FOREIGN = {
    "model": (edit(lambda content: content.update(model="other")), "other"),
    "served model": (edit(lambda content: content["about"]["yarn"].update(served="x")), "served of yarn differs"),
    "lengths": (edit(lambda content: content["shard"].update(lengths=[400, 900])), "answers are missing"),
    "repeats": (edit(lambda content: content["shard"].update(repeats="2")), "repeats"),
    "no methods": (edit(lambda content: content["shard"].pop("methods")), "record of the shard cannot be read"),
    "count": (edit(lambda content: content["shard"].update(of=4)), "answers are missing"),
    "an answer less": (edit(lambda content: content["answers"].pop()), "1 answers are missing"),
    "an answer twice": (edit(lambda content: content["answers"].append(content["answers"][0])), "two answers"),
    "settings": (edit(lambda content: content["about"]["yarn"].update(chat=True)), "another yarn"),
    "whole": (edit(lambda content: content.pop("shard")), "is a whole evaluation"),
    "number": (edit(lambda content: content["shard"].update(number=3)), "number of the shard"),
    "list": (edit(lambda content: content.update(shard=[1, 3])), "the shard must be an object"),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_a_foreign_shard_is_named(name, files, tmp_path, capsys):
    change, reason = FOREIGN[name]
    foreign = tmp_path / "foreign.json"
    foreign.write_text(json.dumps(change(json.loads((files / "1.json").read_text("utf-8")))), encoding="utf-8")
    code, error = merge([files / "0.json", foreign, files / "2.json"], tmp_path / "out.json", capsys)
    assert code == 2
    assert str(foreign) in error
    assert reason in error


def test_a_shard_of_other_lengths_is_named(files, tmp_path, capsys):
    with passkey_servers(1) as (server,):
        words = ["evaluate", "--server", f"none={server.url}", "--server", f"yarn={server.url}", "--lengths", "400,900"]
        assert main([*words, *FLAGS[2:], "--shard", "1/3", "-o", str(tmp_path / "1.json")]) == 0
    _, error = merge([files / "0.json", tmp_path / "1.json", files / "2.json"], tmp_path / "out.json", capsys)
    assert "1.json belongs to another evaluation" in error
    assert "its lengths is 400, 900, not 400, 800" in error


def test_an_output_of_another_shard_is_not_overwritten(files, capsys):
    before = (files / "1.json").read_bytes()
    words = ["evaluate", "--server", "none=http://127.0.0.1:9", "--server", "yarn=http://127.0.0.1:9", *FLAGS]
    assert main([*words, "--served-model", "m", "--shard", "0/3", "-o", str(files / "1.json")]) == 2
    assert "1.json holds shard 1/3: name another output" in capsys.readouterr().err
    assert (files / "1.json").read_bytes() == before
