"""Data that do not vary are drawn: zeros of a masked head, equal values everywhere, one token, one answer."""

import io
import json

import numpy as np
import pytest

from rope_viz.cli.main import main
from rope_viz.own_files import blob_store
from rope_viz.pages import registry
from rope_viz.pages.kernels import pack_report
from rope_viz.picture import export, read_address
from rope_viz.picture.choices import StoredChoice, filed
from rope_viz.real_models.text_results import DEPTHS
from rope_viz.studies.capture_file import CapturedLayer, encode_capture
from rope_viz.studies.pair_sums import add_up
from rope_viz.studies.sums_file import SummedLayer, encode_sums
from rope_viz.tiny_lm import checkpoints
from tests.figures.reports import make_report, make_way
from tests.pictures.test_heads import CONFIG
from tests.pictures.test_real_heads import measured_file

SIZE = 128
"""The head size of Llama 3.1 8B, the model of every request here."""


def archive(q, k):
    buffer = io.BytesIO()
    np.savez(buffer, q=np.asarray(q, np.float32), k=np.asarray(k, np.float32))
    return filed("a.npz", buffer.getvalue())


def table(value):
    return filed("a.csv", "\n".join(",".join([value] * SIZE) for _ in range(2)).encode())


def capture(q, k):
    layers = {0: CapturedLayer(np.asarray(q, np.float32), np.asarray(k, np.float32), scale=0.5, heads=(0, 1, 2, 3))}
    return filed("qk.safetensors", b"".join(encode_capture(layers, config=CONFIG, name="mine", dtype="float32")))


def evaluation(rights, lengths=(1000,), methods=("none",), depths=(0.5,)):
    answers = [
        {"method": method, "length": length, "depth": depth, "repeat": repeat, "right": right}
        for method in methods
        for length in lengths
        for depth in depths
        for repeat, right in enumerate(rights)
    ]
    return filed("a.json", json.dumps({"version": 1, "model": "m", "answers": answers}).encode())


def losses(value, tokens=256):
    values = dict.fromkeys(("none", "linear", "yarn"), [value] * (tokens - 1))
    return json.dumps({"model": "m", "tokens": tokens, "factor": 2.0, "losses": values}).encode()


def keys(value):
    found = {"none": [value] * len(DEPTHS), "yarn": [value] * len(DEPTHS)}
    return json.dumps({"model": "m", "tokens": 256, "factor": 2.0, "key": "12345", "right": found}).encode()


def search(right, loss):
    found = json.loads((checkpoints.FOLDER / "searched.json").read_text(encoding="utf-8"))
    ones = [1.0] * len(found["best"]["divisors"])
    for row in (found["best"], *found["starts"]):
        row.update(divisors=ones, right=right, loss=loss)
        row["held_out"] = {"right": right, "low": right, "high": right, "loss": loss}
    found["gain"].update(right=0.0, low=0.0, high=0.0)
    scaling = found["config"].get("rope_scaling") or found["config"]["rope_parameters"]
    scaling.update(long_factor=ones)
    return json.dumps(found).encode()


def measured(tmp_path, value):
    content = measured_file(tmp_path / "m.json")
    for row in content["rows"].values():
        row.update(strength=[value] * 4, margin=[value] * 4)
        for job in row["jobs"].values():
            job.update(score=value, share=value)
            job.update({"margin": [value] * 4} if "margin" in job else {})
            job.update({"changed": dict.fromkeys(job["changed"], value)} if "changed" in job else {})
    content["loss"]["methods"] = dict.fromkeys(content["loss"]["methods"], [value] * 8)
    return filed("m.json", json.dumps(content).encode())


def report(seconds):
    return pack_report(make_report(make_way("copy", seconds, error=None), make_way("ours, out=", seconds, error=0.0)))


ZEROS, ONES = np.zeros((4, 40, 8)), np.ones((4, 40, 8))


def sums_of_zeros():
    layer = SummedLayer(add_up(ZEROS, ZEROS[:2], 4, "half"), heads=(0, 1, 2, 3))
    return filed("sums.safetensors", b"".join(encode_sums({0: layer}, config=CONFIG, name="mine")))


CONSTANT = {
    "decay.file": {
        "zeros": lambda _: archive(np.zeros((40, SIZE)), np.zeros((40, SIZE))),
        "ones": lambda _: archive(np.ones((40, SIZE)), np.ones((40, SIZE))),
        "one zero token": lambda _: archive(np.zeros(SIZE), np.zeros(SIZE)),
        "zero q": lambda _: archive(np.zeros((2, SIZE)), np.ones((2, SIZE))),
        "tiny": lambda _: archive(np.full((2, SIZE), 1e-38), np.full((2, SIZE), 1e-38)),
        "zeros as text": lambda _: table("0"),
        "denormal as text": lambda _: table("5e-324"),
    },
    "decay.typed": {
        "zeros": lambda _: json.dumps({name: ",".join(["0"] * SIZE) for name in ("q", "k")}).encode(),
        "denormal": lambda _: json.dumps({name: ",".join(["5e-324"] * SIZE) for name in ("q", "k")}).encode(),
    },
    "decay.packed": {
        "one token": lambda _: filed("a.json", b"[0]"),
        "zeros": lambda _: filed("a.json", b"[[0, 0, 0], [0, 0, 0]]"),
        "one document": lambda _: filed("a.json", b"[0, 1, 2]"),
    },
    "rotation.x": {
        "zeros": lambda _: json.dumps({"x": ",".join(["0"] * SIZE)}).encode(),
        "ones": lambda _: json.dumps({"x": ",".join(["1"] * SIZE)}).encode(),
    },
    "heads.file": {
        "zeros": lambda _: capture(ZEROS, ZEROS[:2]),
        "zero k": lambda _: capture(ONES, ZEROS[:2]),
        "ones": lambda _: capture(ONES, ONES[:2]),
        "one zero token": lambda _: capture(ZEROS[:, :1], ZEROS[:2, :1]),
        "sums of zeros": lambda _: sums_of_zeros(),
    },
    "heads.measured": {
        "zeros": lambda path: measured(path, 0.0),
        "ones": lambda path: measured(path, 1.0),
    },
    "recall.file": {
        "all wrong": lambda _: evaluation([False] * 3, (500, 1000), ("none", "yarn"), (0.1, 0.9)),
        "all right": lambda _: evaluation([True] * 3, (500, 1000), ("none", "yarn"), (0.1, 0.9)),
        "no answer": lambda _: evaluation([None] * 2),
        "one answer": lambda _: evaluation([True]),
        "length of one": lambda _: evaluation([True, False], (1,)),
    },
    "recall.report": {"zeros": lambda _: losses(0.0), "ones": lambda _: losses(1.0)},
    "recall.keys": {"none": lambda _: keys(0), "all": lambda _: keys(5)},
    "recall.measured": {"zeros": lambda path: measured(path, 0.0)},
    "recall.search": {
        "zeros": lambda _: filed("a.json", search(0.0, 0.0)),
        "ones": lambda _: filed("a.json", search(1.0, 1.0)),
    },
    "kernels.report": {"equal": lambda _: report(1.0), "tiny": lambda _: report(1e-8)},
}
CASES = [(key, name) for key, cases in CONSTANT.items() for name in cases]
SHOWN = {"decay.file": {"decay.source": "file"}, "decay.typed": {"decay.source": "typed"}}


def queries(key):
    """Yield the queries that show a content on its page, in every view of q and k."""
    usual = {"model": "llama-3.1-8b", **SHOWN.get(key, {})}
    yield from ([usual | {"decay.show": show} for show in ("own", "softmax")] if key.startswith("decay") else [usual])


def test_every_content_has_a_constant_case():
    held = {
        each.key for page in registry.PAGES for each in registry.page(page).choices if isinstance(each, StoredChoice)
    }
    # The page writes these two itself; they are read as a file of the same kind is.
    assert set(CONSTANT) == held - {"heads.live", "recall.searched"}


@pytest.mark.parametrize(("key", "case"), CASES, ids=[f"{key} {case}" for key, case in CASES])
def test_constant_data_are_drawn(tmp_path, key, case):
    page = registry.page(key.partition(".")[0])
    name = blob_store.STORE.keep(blob_store.salt() + CONSTANT[key][case](tmp_path))
    drawn = 0
    for query in queries(key):
        request = read_address.read_request(page, query | {key: name})
        for picture in page.pictures.values():
            if key not in picture.depends or picture.refuses(request):
                continue
            export.render(picture, picture.finished(request), "packed")
            drawn += 1
    assert drawn


@pytest.mark.parametrize("form", ["svg", "csv", "json", "html"])
def test_command_line_draws_a_masked_head(tmp_path, capsys, form):
    np.savez(tmp_path / "qk.npz", q=np.zeros((4, SIZE)), k=np.zeros((4, SIZE)))
    out = tmp_path / f"out.{form}"
    words = f"decay/curves llama-3.1-8b --show own --source file --file {tmp_path / 'qk.npz'} -o {out}"
    assert main(["figure", *words.split()]) == 0, capsys.readouterr()
    assert out.stat().st_size > 100
