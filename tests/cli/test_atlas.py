"""Every command of docs/atlas.md runs, and the numbers in its tables are those that the commands write."""

import csv
import re
import shlex
import tomllib
from pathlib import Path

import numpy as np
import pytest

from rope_viz.cli.main import main
from rope_viz.pages.decay import base_lengths

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "atlas.md").read_text(encoding="utf-8")
COMMANDS = [
    shlex.split(line)
    for block in re.findall(r"```sh\n(.*?)```", TEXT, re.DOTALL)
    for line in block.replace("\\\n", " ").splitlines()
]
SUITE = tomllib.loads((ROOT / "examples" / "atlas.toml").read_text(encoding="utf-8"))["figure"]


@pytest.fixture(scope="module")
def atlas(tmp_path_factory):
    """The folder with what all commands but that of the suite have written."""
    folder = tmp_path_factory.mktemp("atlas")
    for command in COMMANDS:
        if "--suite" not in command:
            assert command[0] == "rope-viz"
            assert main([*command[1:-1], str(folder / command[-1])]) == 0, command
    return folder


def read_table(folder, name):
    """{column: values} of a CSV."""
    lines = [line for line in (folder / name).read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    rows = list(csv.DictReader(lines))
    return {key: [row[key] for row in rows] for key in rows[0]}


def read_numbers(folder, name, column):
    """A column of a CSV, by the beginning of its name, as numbers."""
    table = read_table(folder, name)
    key = next(key for key in table if key.startswith(column))
    return np.array([float(value) for value in table[key]])


def rows_of(heading):
    """The rows of the table below a heading, without its head."""
    part = TEXT.split(f"## {heading}\n")[1].split("\n## ")[0]
    return [
        [cell.strip() for cell in line.strip("|").split("|")] for line in part.splitlines() if line.startswith("|")
    ][2:]


def test_every_command_runs(atlas):
    assert {path.stem for path in atlas.iterdir()} == {Path(one["file"]).stem for one in SUITE}


def test_the_suite_makes_its_figures(tmp_path, monkeypatch):
    (command,) = (one for one in COMMANDS if "--suite" in one)
    monkeypatch.chdir(ROOT)
    assert main([*command[1:-1], str(tmp_path)]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(one["file"] for one in SUITE)


def test_there_are_eight_figures_each_of_two_models():
    assert len(SUITE) == 16
    for first, second in zip(SUITE[::2], SUITE[1::2], strict=True):
        assert first["picture"] == second["picture"]
        assert first["model"] != second["model"]
        image = Path(first["file"]).with_suffix(".png").name
        assert f"../assets/atlas/{image}" in TEXT
        assert (ROOT / "assets" / "atlas" / image).stat().st_size < 60_000
    assert len(re.findall(r"^## ", TEXT, re.MULTILINE)) == 8


def test_the_bound_is_that_of_the_document(atlas):
    # The first row is distance 1.
    bound = {name: np.append(0, read_numbers(atlas, f"bound{name}.csv", "mean |S|")) for name in ("", "-llama-3-8b")}
    found = {row[0]: row[2] for row in rows_of("The upper bound on the score")}
    assert found["at distance 10"] == f"{bound[''][10]:.2f}"
    assert found["at distance 250"] == f"{bound[''][250]:.3f}"
    assert found["at distance 1"] == f"{bound[''][1]:.2f}"
    assert found["Llama 3 at distance 250"] == f"{bound['-llama-3-8b'][250]:.2f}"
    assert f"at 4,096 it is {bound[''][4096]:.3f} for Llama 2, above the {bound[''][1000]:.3f} at 1,000" in TEXT


def test_the_first_negative_distances_are_those_of_the_document(atlas):
    found = [row[2] for row in rows_of("Where the score turns negative")]
    for text, name in zip(found, ("first-negative.csv", "first-negative-llama-3-8b.csv"), strict=True):
        values = read_numbers(atlas, name, "plain")
        assert text == f"negative from {int(np.flatnonzero(values < 0)[0]) + 1:,}"


def test_the_bases_reach_what_the_document_says():
    for length, base, reach, verdict in rows_of("The base that a length needs"):
        wanted, found = int(length.replace(",", "")), base_lengths.find_reach(128, 128, float(base))
        assert verdict.startswith("agrees") is (found >= wanted)
        assert reach == (f"{found:,}" if found < wanted else "none before"), length


def test_the_ramps_differ_as_the_document_says(atlas):
    for row, name in zip(
        rows_of("Two ramps called YaRN"), ("yarn-ramps", "yarn-ramps-qwen2.5-7b-instruct"), strict=True
    ):
        code, paper = (read_numbers(atlas, f"{name}.csv", column) for column in ("released", "paper"))
        pair = int(np.argmax(code / paper))
        digits = len(row[2].split()[0].partition(".")[2])
        assert row[1] == row[2] == f"{code[pair] / paper[pair]:.{digits}f} at pair {pair}"


def test_the_slowest_pairs_are_divided_as_the_document_says(atlas):
    plain, base, ntk = (values[-1] for values in map(np.double, list(read_table(atlas, "ntk-base.csv").values())[1:]))
    found = [row[2] for row in rows_of("NTK-aware scaling as a base")]
    assert found == [f"divided by {each / plain:.4g}" for each in (ntk, base)]


def test_the_bands_are_those_of_the_document(atlas):
    for row, name in zip(rows_of("Bands of Llama 3"), ("", "-llama-3.2-1b"), strict=True):
        ratio = read_numbers(atlas, f"llama-3-bands{name}.csv", "Llama 3")
        kept, divided = int((ratio > 1 - 1e-9).sum()), int((ratio <= ratio.min() * (1 + 1e-9)).sum())
        assert row[1] == row[2] == f"{kept}, {len(ratio) - kept - divided}, {divided}"


def test_the_pairs_with_a_whole_turn_are_those_of_the_document(atlas):
    for row, name in zip(rows_of("Pairs that have seen every angle"), ("", "-qwen2.5-7b-instruct"), strict=True):
        seen = read_numbers(atlas, f"seen-angles{name}.csv", "seen")
        assert row[1] == row[2] == str(2 * int((seen >= 1).sum()))


def test_the_vectors_are_those_of_the_document(atlas):
    v4, v32 = (read_table(atlas, f"vectors{name}.csv") for name in ("", "-deepseek-v3.2"))
    bases = sorted({float(base) for base in v4["base"] if base})
    assert rows_of("Which vector turns where")[0][2] == " and ".join(f"{base:,.0f}" for base in bases)
    where = dict(zip(v4["vector"], v4["rotated at"], strict=True))
    assert where["attention output"] == "back, position of q"
    assert where["compressed k and v"].startswith("first of ")
    pairing = dict(zip(v32["vector"], v32["pairing"], strict=True))
    assert rows_of("Which vector turns where")[3][2] == f"{pairing['q']}, {pairing['q of the indexer']}"
