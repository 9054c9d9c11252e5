"""`rope-viz learn`: one file with all scenes, with links only to a server that was named."""

import json
import re

import pytest

from rope_viz.cli.main import main
from rope_viz.texts import Texts, use_language


def test_file_holds_all_scenes_and_no_foreign_address(tmp_path):
    path = tmp_path / "learn.html"
    assert main(["learn", "-o", str(path)]) == 0
    text = path.read_text(encoding="utf-8")
    assert path.stat().st_size < 3 << 20
    for title in ("The same word twice", "Beyond the trained length", "The proof, and five questions"):
        assert title in text
    assert re.findall(r"<(?:script|link|img)[^>]*(?:src|href)=", text) == []
    assert '"app": null' in text


def test_links_lead_to_the_named_server(tmp_path):
    path = tmp_path / "learn.html"
    assert main(["learn", "-o", str(path), "--app", "https://rope.example.org/"]) == 0
    assert '"app": "https://rope.example.org"' in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("address", ["rope.example.org", "javascript:alert(1)", 'https://x"><script>'])
def test_unusable_address_is_refused(tmp_path, capsys, address):
    path = tmp_path / "learn.html"
    assert main(["learn", "-o", str(path), "--app", address]) == 2
    assert "--app must be like https://" in capsys.readouterr().err
    assert not path.exists()


def test_language_is_that_of_the_flag(tmp_path, capsys):
    path = tmp_path / "learn.html"
    assert main(["learn", "-o", str(path), "--language", "zh"]) == 0
    text = path.read_text(encoding="utf-8")
    with use_language("zh"):
        title = str(Texts("learn")("scene1.title"))
    assert '<html lang="zh-Hans">' in text
    assert json.dumps(title) in text
    assert "The same word twice" not in text
    with pytest.raises(SystemExit):
        main(["learn", "-o", str(path), "--language", "fr"])
    assert "choose from en, zh" in capsys.readouterr().err.replace("'", "")
