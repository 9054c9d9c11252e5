"""`rope-viz report`: one offline file with every picture of every page, or Markdown with picture files."""

import json
import re
from xml.etree import ElementTree

import pytest

from rope_viz.cli.main import main
from rope_viz.models.catalog import catalog
from rope_viz.pages import registry
from tests.example_models import HAVING

pytestmark = pytest.mark.slow

# What a model that reads recalls takes seconds to find out; its page is held to its own tests.
# A report is about one model.
PICTURES = [picture for picture in registry.pictures() if picture.page not in ("recall", "compare")]


@pytest.fixture(autouse=True)
def without_reading(monkeypatch):
    monkeypatch.setattr(registry, "pictures", lambda: PICTURES)


def test_html_report_holds_every_picture_and_plotly_once(tmp_path):
    path = tmp_path / "report.html"
    assert main(["report", "qwen3-8b-yarn", "-o", str(path)]) == 0
    page = path.read_text(encoding="utf-8")
    head = page[: page.index("<script>")]
    assert page.count("plotly.js v") == 1
    assert not re.findall(r"<(?:script|link|img)[^>]+(?:src|href)=", page)
    figures = json.loads(re.search(r"const figures = (.*);\n", page)[1])
    for picture in PICTURES:
        kind = picture.kind.__name__
        place = picture.address.replace("/", "-")
        drawn = kind == "Figure" and picture.address not in HAVING
        assert (place in figures) == drawn, picture.address
        if kind in ("Clocks", "Patch", "Hands"):
            assert f'<div id="{place}" class="rv-{kind.lower()}">' in head
            assert f'document.getElementById("{place}")' in page
    for title in {registry.title_of(picture.page) for picture in PICTURES}:
        assert f"<h2>{title}</h2>" in head
    assert "<strong>24 of 64 pairs keep their frequency.</strong>" in head
    assert "Config check" in head


def test_markdown_report_names_existing_files(tmp_path):
    path = tmp_path / "card.txt"
    assert main(["report", "llama-3.2-1b", "--format", "md", "-o", str(path)]) == 0
    text = path.read_text(encoding="utf-8")
    assert text.startswith(f"# {catalog()['llama-3.2-1b'].name}: rotary position embedding\n")
    named = re.findall(r"^!\[.*\]\((card_files/.*\.svg)\)$", text, re.M)
    assert sorted(named) == sorted(f"card_files/{each.name}" for each in (tmp_path / "card_files").glob("*.svg"))
    assert len(named) > 20
    assert ElementTree.parse(tmp_path / named[0]).getroot().tag.endswith("svg")
    for line in text.splitlines():
        if line.startswith("|---"):
            assert set(line) == {"|", "-"}


def test_report_of_a_user_config_has_findings_and_escapes_markup(tmp_path):
    config = dict(catalog()["qwen3-8b-yarn"].config)
    config["rope_scaling"] = {**config["rope_scaling"], "factor": -4.0}
    config["rope_scaling"]["factor"] = 2.0
    config["_name_or_path"] = "<script>alert(1)</script>"
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config), encoding="utf-8")
    out = tmp_path / "report.html"
    assert main(["report", str(path), "-o", str(out)]) == 0
    page = out.read_text(encoding="utf-8")
    assert "<script>alert" not in page
    found = page[page.index('<section id="findings">') :]
    assert "<li><strong>" in found[: found.index("</section>")]


@pytest.mark.parametrize("name", ["report.docx", "report"])
def test_unknown_report_suffix_is_refused(name, tmp_path, capsys):
    assert main(["report", "llama-2-7b", "-o", str(tmp_path / name)]) == 2
    assert "must end in .html or .md" in capsys.readouterr().err
