"""Positions of packed documents: faults that were planted, and distances against counting every pair."""

import io
import json

import numpy as np
import pytest

from rope_viz.cli.main import main
from rope_viz.studies.packed_positions import (
    count_distances,
    find_faults,
    make_rows,
    parse_lengths,
    read_rows,
)


def rows_of(positions, **more):
    """The rows of a JSON file."""
    return read_rows("batch.json", json.dumps({"position_ids": positions, **more}).encode())


def kinds(rows, **more):
    """The kinds of the findings, those that are wrong in capitals."""
    return [fault.kind.upper() if fault.is_wrong else fault.kind for fault in find_faults(rows, **more)]


def count_all(row, *, crossing):
    """The distances of all pairs of a row, one by one: {distance: pairs}."""
    number = np.full(len(row.positions), -1)
    for index, (first, end) in enumerate(row.documents):
        number[first:end] = index
    found = {}
    for query in np.flatnonzero(row.counts & (number >= 0)):
        for key in np.flatnonzero(row.counts & (number >= 0)):
            if key <= query and (crossing or number[key] == number[query]):
                distance = int(row.positions[query] - row.positions[key])
                found[distance] = found.get(distance, 0) + 1
    return found


PLANTED = {
    "right": ([0, 1, 2, 0, 1], [0, 3, 5], []),
    "one document": ([0, 1, 2, 3, 4], None, []),
    "not reset": ([0, 1, 2, 3, 4], [0, 3, 5], ["NOT RESET"]),
    "offset by one": ([1, 2, 3, 1, 2], [0, 3, 5], ["OFFSET", "OFFSET"]),
    "offset, boundaries unknown": ([0, 1, 2, 1, 2, 3], None, ["OFFSET"]),
    "left padding with 1": ([1, 1, 1, 0, 1, 2], [0, 6], ["padding"]),
    "left padding with 0": ([0, 0, 0, 0, 1, 2], [0, 6], ["padding"]),
    "right padding with 1": ([0, 1, 2, 3, 1, 1], [0, 6], ["padding"]),
    "right padding with its last position": ([0, 1, 2, 3, 3, 3], [0, 6], ["padding"]),
    "right padding behind the documents": ([0, 1, 2, 0, 0], [0, 3], ["outside"]),
    "tokens without a document": ([0, 1, 2, 0, 1], [0, 3], ["OUTSIDE"]),
    "a gap": ([0, 1, 4, 5], [0, 4], ["GAP"]),
    "a repeated position": ([0, 1, 1, 2], [0, 4], ["REPEATED"]),
    "a fall inside a document": ([0, 1, 2, 0, 1], [0, 5], ["BACKWARDS"]),
    "all of one value": ([0, 0, 0, 0], [0, 4], ["padding"]),
    "empty documents at the end": ([0, 1, 0], [0, 2, 3, 3, 3], []),
}


@pytest.mark.parametrize("name", PLANTED)
def test_planted_faults_are_found(name):
    positions, bounds, expected = PLANTED[name]
    assert kinds(rows_of(positions, **({} if bounds is None else {"cu_seqlens": bounds}))) == expected


def test_a_masked_token_is_no_part_of_a_document():
    padded = {"attention_mask": [[0, 0, 1, 1, 1]], "cu_seqlens": [0, 5]}
    assert kinds(rows_of([[0, 1, 2, 3, 4]], **padded)) == ["OFFSET"]
    assert kinds(rows_of([[1, 1, 0, 1, 2]], **padded)) == []


def test_continued_rows_count_on_through_their_documents():
    rows = make_rows([3, 2], "continued")
    assert kinds(rows, form="continued") == []
    assert kinds(rows) == ["NOT RESET"]
    assert kinds(make_rows([3, 2]), form="continued") == ["BACKWARDS"]


def test_positions_beyond_the_limit_are_found():
    assert kinds(make_rows([8]), limit=8) == []
    (fault,) = find_faults(make_rows([9, 3]), limit=8)
    assert (fault.kind, fault.first, fault.last) == ("beyond", 8, 8)


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("crossing", [False, True])
def test_distances_are_those_of_every_pair(seed, crossing):
    draw = np.random.default_rng(seed)
    lengths = draw.integers(1, 12, draw.integers(1, 6))
    positions = np.concatenate([np.arange(length) + draw.integers(0, 5) for length in lengths])
    changed = draw.integers(0, len(positions), draw.integers(0, 4))
    positions[changed] += draw.integers(-2, 3, len(changed))
    mask = draw.random(len(positions)) > 0.1
    mask[0] = True
    bounds = np.cumsum([0, *lengths])
    more = {"cu_seqlens": bounds.tolist(), "attention_mask": mask.astype(int).tolist()}
    rows = rows_of(positions.tolist(), **more)
    found = count_distances(rows, crossing=crossing)
    expected = count_all(rows[0], crossing=crossing)
    assert {found.start + i: value for i, value in enumerate(found.values) if value} == expected
    negative = sum(value for distance, value in expected.items() if distance < 0)
    assert found.negative == pytest.approx(negative / sum(expected.values()))
    flat = np.sort(np.repeat(list(expected), list(expected.values())))
    assert found.quantile(0.5) == flat[int(np.ceil(0.5 * len(flat))) - 1]


def test_files_of_numpy_are_read(tmp_path):
    positions = np.array([[0, 1, 0, 1, 2], [0, 1, 2, 3, 4]])
    stream = io.BytesIO()
    np.savez(stream, position_ids=positions, cu_seqlens=np.array([0, 2, 5, 10]))
    rows = read_rows("batch.npz", stream.getvalue())
    assert [row.documents for row in rows] == [((0, 2), (2, 5)), ((0, 5),)]
    stream = io.BytesIO()
    np.save(stream, positions)
    assert [row.documents for row in read_rows("batch.npy", stream.getvalue())] == [((0, 2), (2, 5)), ((0, 5),)]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", b"1", r"must end in \.json"),
        ("a.json", b"{", "not JSON"),
        ("a.json", b"{}", "no position_ids"),
        ("a.json", b"[[0, 1], [0]]", "rows of one length"),
        ("a.json", b"[0.5]", "whole numbers"),
        ("a.json", b"[[[0, 1]]]", "one axis at a time"),
        ("a.json", b'{"position_ids": [0, 1], "cu_seqlens": [0, 3]}', "end at token 3"),
        ("a.json", b'{"position_ids": [0, 1], "cu_seqlens": [1, 2]}', "must begin with 0"),
        ("a.json", b'{"position_ids": [0, 1], "attention_mask": [1]}', "shape of position_ids"),
    ],
)
def test_other_files_are_refused_with_a_sentence(name, content, message):
    with pytest.raises(ValueError, match=message):
        read_rows(name, content)


@pytest.mark.parametrize("text", ["", "a", "0", "1.5", "-3", "9" * 20])
def test_other_lengths_are_refused(text):
    with pytest.raises(ValueError, match=r"lengths must|whole numbers"):
        parse_lengths(text)


def test_the_command_tells_by_its_exit_code(tmp_path, capsys):
    path = tmp_path / "batch.json"
    path.write_text(json.dumps({"position_ids": [0, 1, 2, 3, 4, 5]}))
    assert main(("positions", str(path))) == 0
    assert "give cu_seqlens or --lengths" in capsys.readouterr().out
    assert main(("positions", str(path), "--lengths", "4,2", "--json")) == 1
    report = json.loads(capsys.readouterr().out)
    assert [finding["kind"] for finding in report["findings"]] == ["not reset"]
    assert report["distances"]["pairs_within_documents"] == 4 * 5 / 2 + 2 * 3 / 2
    assert main(("positions", str(path), "--lengths", "4,2", "--continued")) == 0
    assert main(("positions", str(path), "--config", "smollm2-135m")) == 0
    assert main(("positions", str(path), "--limit", "5")) == 1
    assert main(("positions",)) == 2
    assert main(("positions", str(path), "-o", str(tmp_path / "plot.xyz"))) == 2


def test_the_picture_of_the_command_has_the_counts(tmp_path):
    out = tmp_path / "distances.csv"
    assert main(("positions", "--lengths", "3,2", "-o", str(out))) == 0
    numbers = [line.split(",") for line in out.read_text().splitlines() if line[:1] in "-0123456789"]
    counts = {int(float(row[0])): tuple(float(value or 0) for value in row[1:]) for row in numbers}
    (row,) = make_rows([3, 2])
    within, whole = (count_all(row, crossing=crossing) for crossing in (False, True))
    assert counts == {distance: (whole[distance], within.get(distance, 0)) for distance in whole}
