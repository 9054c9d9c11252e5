"""Every entry of docs/findings.md is reproduced by its own command."""

import io
import json
import re
import shlex
from pathlib import Path

import pytest

from rope_viz.cli.main import main

pytestmark = pytest.mark.slow

TEXT = (Path(__file__).parents[1] / "docs" / "findings.md").read_text(encoding="utf-8")
ENTRIES = re.split(r"^## \d+\. ", TEXT, flags=re.MULTILINE)[1:]


def title_of(entry):
    return entry.splitlines()[0][:50]


@pytest.mark.parametrize("entry", ENTRIES, ids=title_of)
def test_the_command_of_a_finding_gives_its_figures(entry, monkeypatch, capsys):
    command, _, document = re.search(r"```sh\n(.*?)```", entry, re.DOTALL)[1].partition(" <<'JSON'\n")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(document.removesuffix("JSON\n").encode())))
    words = shlex.split(command.replace("\\\n", " "))
    assert words[:2] == ["rope-viz", "match"]
    assert main([*words[1:], "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["evidence"] == "executed"
    effect = " ".join(re.search(r"\*Effect\*: (.*?)\.\n- ", entry, re.DOTALL)[1].split())
    parts = []
    if found["worst_pair"] is not None:
        parts.append(f"pair {found['worst_pair']}, frequency ×{found['worst_ratio']:.4g}")
        parts[0] += f", one radian from position {found['far_position']:,}"
    if abs(found["score_ratio"] - 1) > 1e-4:
        parts.append(f"scores ×{found['score_ratio']:.4g}")
    assert effect == "; ".join(parts)


def test_every_finding_names_version_file_and_report():
    assert len(ENTRIES) >= 15
    for entry in ENTRIES:
        labels = re.findall(r"^- \*(\w+)\*:", entry, re.MULTILINE)
        assert labels == ["Version", "File", "Computes", "Meant", "Effect", "Report"], title_of(entry)
