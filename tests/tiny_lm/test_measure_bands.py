"""`measure --bands` and its table: rows, intervals, what is continued, and what files may hold."""

import copy
import json
import math
import re
import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("tokenizers")

from rope_viz.cli.main import main  # noqa: E402
from rope_viz.real_models import measure_bands, measured_subjects  # noqa: E402
from rope_viz.real_models.band_change import BandChange  # noqa: E402
from rope_viz.real_models.band_table import (  # noqa: E402
    FIRST,
    Condition,
    estimate,
    read_band_table,
)
from rope_viz.real_models.gguf_model import load_gguf  # noqa: E402
from rope_viz.real_models.measured_file import read_measured  # noqa: E402
from rope_viz.real_models.torch_forward import TorchLm  # noqa: E402
from tests.tiny_lm.gguf_writer import write_small_model  # noqa: E402

pytestmark = pytest.mark.float32_products

FLAGS = "--tokens 512 --needle-tokens 640 --sequences 1".split()
BENCHMARKS = Path(__file__).parents[2] / "benchmarks" / "real_model"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A small model, and two texts of more than 1,920 tokens each."""
    found = tmp_path_factory.mktemp("bands")
    write_small_model(found / "small.gguf")
    rng = np.random.default_rng(0)
    for name in ("one.txt", "two.txt"):
        (found / name).write_text(" ".join(rng.choice(["the", "thin", "12", "in", "a", "that"], 2400)))
    return found


def run(folder, output, *flags):
    texts = [word for name in ("one.txt", "two.txt") for word in ("--text", str(folder / name))]
    assert main(["measure", str(folder / "small.gguf"), *texts, *FLAGS, *flags, "-o", str(output)]) == 0
    return json.loads(output.read_text())


@pytest.fixture(scope="module")
def measured(folder, tmp_path_factory):
    return run(folder, tmp_path_factory.mktemp("out") / "m.json", "--bands", "0-1", "--change", "zero")


def test_rows_are_losses_and_answers_of_the_changed_model(folder, measured):
    table = read_band_table(measured["bands"])
    condition = Condition("0-1", "zero", "all")
    assert table.conditions == (condition,)
    assert table.texts == 4
    model = TorchLm(load_gguf(folder / "small.gguf"))
    _, encode = measured_subjects.load_gguf_subject(folder / "small.gguf", "cpu")
    texts = [encode((folder / name).read_text()) for name in ("one.txt", "two.txt")]
    pieces = [texts[0][:640], texts[1][:640], texts[0][640:1280], texts[1][640:1280]]
    change = BandChange((0, 1), "zero")
    for number, piece in enumerate(pieces):
        losses = model.losses(piece[:512], change=change).astype(float)
        wanted = [losses[: table.block - 1].mean(), losses[-table.block :].mean()]
        # A loss is a difference of logits of about its own size, so its error grows with it.
        np.testing.assert_allclose(table.losses[FIRST, condition][number][[0, -1]], wanted, rtol=1e-5, atol=1e-4)
    rng = np.random.default_rng(measure_bands.SEED)
    for number, piece in enumerate(pieces):
        needles = measure_bands.hide_needles(encode, piece, rng)
        assert len(needles.reading) + max(map(len, needles.questions)) == 640
        for depth in range(5):
            ids = needles.ask_alone(depth)
            first = torch.argmax(model.hidden(ids, change=change)[-6:-1] @ model.unembedding.T, dim=1).numpy()
            assert table.right[FIRST, condition][number, depth] == pytest.approx((first == ids[-5:]).mean())


def test_a_reading_holds_every_key_at_its_depth():
    def encode(text):
        return np.frombuffer(text.encode(), np.uint8).astype(np.int64)

    needles = measure_bands.hide_needles(encode, encode("x" * 2000), np.random.default_rng(0))
    written = bytes(needles.reading.astype(np.uint8)).decode()
    found = re.findall(r"The pass key of (\w+) is (\d{5})\.", written)
    assert [city for city, _ in found] == list(measure_bands.CITIES)
    for number, (city, key) in enumerate(found):
        asked = bytes(needles.questions[number].astype(np.uint8)).decode()
        assert asked.endswith(f"The pass key of {city} is {key}")
        before = written[: written.index(f"key of {city}")].count("x")
        assert before / written.count("x") == pytest.approx(measure_bands.DEPTHS[number], abs=0.001)
        alone = bytes(needles.ask_alone(number).astype(np.uint8)).decode()
        assert re.findall(r"key of (\w+) is \d{5}\. Remember", alone) == [city]
        assert alone.count("x") == written.count("x")
        assert measure_bands.count_answer(encode, city) == 5
    assert len(needles.reading) + max(map(len, needles.questions)) == 2000


def test_an_interrupted_file_goes_on_and_takes_another_change(folder, measured, tmp_path, monkeypatch, capsys):
    asked = []
    losses = measured_subjects.GgufSubject.losses
    monkeypatch.setattr(
        measured_subjects.GgufSubject, "losses",
        lambda self, ids, spec, change=None: asked.append(change) or losses(self, ids, spec, change),
    )  # fmt: skip
    cut = copy.deepcopy(measured)
    gone = [key for key in cut["bands"]["rows"] if key.startswith(("loss/first/4", "needle/first/4"))]
    for key in gone:
        del cut["bands"]["rows"][key]
    (tmp_path / "cut.json").write_text(json.dumps(cut))
    found = run(folder, tmp_path / "cut.json", "--bands", "0-1")
    assert len(gone) == 4
    assert len(asked) == 2
    assert found["bands"]["rows"] == measured["bands"]["rows"]
    found = run(folder, tmp_path / "cut.json", "--bands", "slow", "--change", "remove", "--heads", "L1H0")
    assert {str(each) for each in read_band_table(found["bands"]).conditions} == {"0-1/zero/all", "slow/remove/L1H0"}
    assert found["bands"]["about"]["changes"]["slow/remove/L1H0"]["heads"] == ["L1H0"]
    printed = capsys.readouterr().out
    for part in ("0-1/zero/all: loss ", "slow/remove/L1H0: loss ", "found by depth: ", "as it is: loss "):
        assert part in printed
    # Another length of the texts begins a new table.
    found = run(folder, tmp_path / "cut.json", "--bands", "0-1", "--texts", "5", "--tokens", "256")
    assert {str(each) for each in read_band_table(found["bands"]).conditions} == {"0-1/zero/all"}


def test_the_page_reads_the_table_in_a_measured_file(measured):
    found = read_measured(json.dumps(measured).encode())
    assert found.bands.conditions == (Condition("0-1", "zero", "all"),)
    assert read_measured(json.dumps({key: measured[key] for key in measured if key != "bands"}).encode()).bands is None


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--bands", "0-99"], "means no pairs of this model"),
        (["--bands", "0", "--heads", "L9H9"], "the model has no head 'L9H9'"),
        (["--bands", "0", "--texts", "3"], "at least 4 texts, got 3"),
        (["--bands", "0", "--texts", "400"], "give longer texts"),
        (["--bands", "0", "--needle-tokens", "64"], "--needle-tokens"),
        (["--bands", "0", "--change", "divide", "--divisor", "1"], "the divisor must be above 1"),
        (["--bands", "0", "--layers", "7"], "at least one head"),
        ([], "several --text need --bands"),
    ],
)
def test_what_cannot_be_measured_is_refused(flags, message, folder, tmp_path, capsys):
    texts = [word for name in ("one.txt", "two.txt") for word in ("--text", str(folder / name))]
    assert main(["measure", str(folder / "small.gguf"), *texts, *FLAGS, *flags, "-o", str(tmp_path / "m.json")]) == 2
    assert message in capsys.readouterr().err


def test_intervals_are_students_over_texts():
    values = np.array([[0.1, 1.0], [0.2, 1.1], [0.4, 0.9], [0.1, 1.0]])
    found = estimate(values)
    mean = [sum(column) / 4 for column in values.T]
    spread = [math.sqrt(sum((each - m) ** 2 for each in column) / 3) for column, m in zip(values.T, mean, strict=True)]
    # Two-sided 95 % quantile of Student's distribution with 3 degrees of freedom.
    half = [3.182446 * each / 2 for each in spread]
    np.testing.assert_allclose(found.low, np.subtract(mean, half), atol=1e-4)
    np.testing.assert_allclose(found.high, np.add(mean, half), atol=1e-4)


def table(**changes):
    """A small table as JSON data."""
    rows = {
        f"{measure}/first/{text}/{condition}": row
        for text in "1234"
        for condition in ("none", "0-1/zero/all")
        for measure, row in (("loss", {"loss": [1.0, 2.0]}), ("needle", {"right": [1.0, 0.8], "nats": [0.1, 0.2]}))
    }
    about = {"block": 32, "tokens": {"loss": 64, "needle": 64}, "depths": [0.1, 0.9]}
    return {"about": about, "rows": rows | changes}


def test_a_needle_is_found_if_the_whole_answer_is_right():
    found = read_band_table(table())
    condition = Condition("0-1", "zero", "all")
    np.testing.assert_allclose(found.found_by_depth(condition).mean, [1.0, 0.0])
    assert found.found(condition).mean == 0.5
    # Wilson's interval of 4 in 8: https://doi.org/10.1080/01621459.1927.10502953
    np.testing.assert_allclose(
        [found.found(condition).low[0], found.found(condition).high[0]], [0.2152, 0.7848], atol=1e-3
    )


def test_a_change_that_some_texts_lack_is_left_out():
    raw = table()
    del raw["rows"]["needle/first/3/0-1/zero/all"]
    assert read_band_table(raw).conditions == ()


@pytest.mark.parametrize("part", ["/4/", "/none", "loss/"])
def test_changes_wait_for_four_texts_of_the_unchanged_model(part):
    raw = table()
    cut = {key: row for key, row in raw["rows"].items() if part not in key}
    assert read_band_table(raw | {"rows": cut}).conditions == ()


@pytest.mark.parametrize(
    "wrong",
    [
        [],
        {"about": {}, "rows": {}},
        table(x={}),
        table(**{"loss/first/1/none": {"loss": ["1"]}}),
        table(**{"loss/first/1/none": {"loss": [1.0]}}),
        table(**{"needle/first/1/none": {"right": [1.0, 2.0]}}),
        table(**{"needle/first/1/none": {"right": [1.0]}}),
        {"about": table()["about"] | {"depths": [2.0]}, "rows": table()["rows"]},
        {"about": table()["about"] | {"planned": ["x"]}, "rows": table()["rows"]},
    ],
)
def test_wrong_tables_are_refused(wrong):
    with pytest.raises(ValueError, match=r".+"):
        read_band_table(wrong)


@pytest.fixture
def script(monkeypatch):
    """The script of the shipped table, whose measurements are made up."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import bands

    yield bands
    for name in ("bands", "common"):
        sys.modules.pop(name, None)


def test_the_script_does_not_repeat_rows_that_its_file_has(script, tmp_path, monkeypatch):
    write_small_model(tmp_path / "m.gguf")
    about = {"model": script.sha256((tmp_path / "m.gguf").read_bytes()), "commit": "", "texts": "", "text_sha256": {}}
    np.savez(tmp_path / "t.npz", about=np.array(json.dumps(about)))
    asked = []
    monkeypatch.setattr(script, "start_worker", lambda *arguments: None)
    monkeypatch.setattr(script, "measure_row", lambda key: asked.append(key) or {"loss": [1.0]})
    flags = ["--tokens", str(tmp_path / "t.npz"), "-o", str(tmp_path / "b.json")]
    monkeypatch.setattr(sys, "argv", ["bands.py", str(tmp_path / "m.gguf"), *flags])
    script.main()
    # Two measures of four texts: 8 groups of pairs, 2 changes, 3 choices of heads, and the unchanged model. Then the
    # losses of four further texts with 8 changes.
    assert len(asked) == 2 * 4 * (8 * 2 * 3 + 1) + 4 * (8 + 1)
    assert len(set(asked)) == len(asked)
    assert [key.split("/")[-1] for key in asked[:8]] == ["none"] * 8
    found = json.loads((tmp_path / "b.json").read_text())
    for key in list(found["rows"])[5:]:
        del found["rows"][key]
    (tmp_path / "b.json").write_text(json.dumps(found))
    first, asked[:] = list(asked), []
    script.main()
    assert asked == first[5:]
