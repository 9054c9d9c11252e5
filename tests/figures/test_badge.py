"""The badge for model cards says what `runtimes` says, has room for its text, and is readable without its looks."""

import json
import re
import xml.etree.ElementTree as ET

import pytest
from matplotlib import font_manager, ft2font

from rope_viz.cli.main import main
from rope_viz.figures.badge import describe, make_badge, measure
from rope_viz.models.catalog import catalog
from rope_viz.runtimes.compare import compare
from rope_viz.texts import use_language
from tests.offenders import for_each

SVG = "{http://www.w3.org/2000/svg}"


def texts_of(svg):
    return [node.text for node in ET.fromstring(svg).iter(f"{SVG}text")]


@for_each(list(catalog()))
def test_badge_counts_what_the_command_prints(model):
    """The words of the badge, counted again from the verdicts of the newest releases."""
    rows = [one for one in compare(catalog()[model].config) if one.emulation.runtime != "paper"]
    newest = list({one.emulation.runtime: one for one in reversed(rows)}.values())
    parts = []
    for known, words in (("executed", "runtime{} executed"), ("by rule", "by rule")):
        verdicts = [one.verdict() for one in newest if one.how == known and not one.verdict().startswith("refuses")]
        differ = sum(not verdict.startswith("agrees") for verdict in verdicts)
        verdict = f"{differ} {'differs' if differ == 1 else 'differ'}" if differ else ""
        if verdicts:
            count = words.format("" if len(verdicts) == 1 else "s")
            parts.append(f"{len(verdicts)} {count}, {verdict or ('agrees' if len(verdicts) == 1 else 'all agree')}")
    asked = sum(bool(one.emulation.known.asked) for one in newest)
    parts += [f"{asked} engine{'' if asked == 1 else 's'} asked"] if asked else []
    assert describe(rows) == "; ".join(parts)


@for_each(list(catalog()))
def test_text_has_its_width(model):
    font = ft2font.FT2Font(font_manager.findfont("DejaVu Sans"))
    font.set_size(11, 72)
    text = describe(compare(catalog()[model].config))
    real = sum(font.load_char(ord(letter), ft2font.LoadFlags.NO_HINTING).linearHoriAdvance for letter in text) / 65536
    assert abs(measure(text) / real - 1) < 0.02
    svg = ET.fromstring(make_badge(catalog()[model].config, model))
    _, right = svg.iter(f"{SVG}text")
    assert float(right.get("x")) + float(right.get("textLength")) + 6 == float(svg.get("width"))
    assert right.get("textLength") == str(measure(right.text))


def test_name_is_escaped_and_in_the_title():
    name = "A<b>&\"$text' model"
    svg = ET.fromstring(make_badge(catalog()["phi-4-mini"].config, name))
    told = "5 runtimes executed, 1 differs; 1 by rule, 1 differs; 3 engines asked"
    assert svg.find(f"{SVG}title").text == svg.get("aria-label") == f"RoPE of {name}: {told}"
    assert texts_of(ET.tostring(svg)) == ["RoPE", told]


def test_model_that_no_runtime_is_known_for_has_a_grey_badge():
    config = catalog()["llama-3.1-8b"].config | {"model_type": "nobody_knows_this"}
    svg = make_badge(config, "")
    assert texts_of(svg) == ["RoPE", "not known"]
    assert b"#5B6470" in svg


def test_file_of_the_command_does_not_have_its_path(tmp_path, capsysbinary):
    path = tmp_path / "secret folder" / "config.json"
    path.parent.mkdir()
    path.write_text(json.dumps(dict(catalog()["qwen3-8b"].config)))
    assert main(["badge", str(path), "-o", "-"]) == 0
    printed = capsysbinary.readouterr().out
    assert b"secret" not in printed
    assert re.search(rb"<title>RoPE: 5 runtimes executed", printed)
    assert main(["badge", str(path), "--name", "My model", "-o", str(tmp_path / "badge.svg")]) == 0
    assert b"RoPE of My model: 5 runtimes" in (tmp_path / "badge.svg").read_bytes()


@pytest.mark.parametrize("config", ['{"model_type": "mamba2"}', '{"_class_name": "FluxTransformer2DModel"}'])
def test_no_badge_without_rotary_embedding(config, tmp_path, capsys):
    path = tmp_path / "config.json"
    path.write_text(config)
    assert main(["badge", str(path), "-o", str(tmp_path / "badge.svg")]) == 2
    assert not (tmp_path / "badge.svg").exists()


def test_a_chinese_badge_has_room_for_full_width_characters():
    assert measure("一致；按规则") == 66
    with use_language("zh"):
        svg = make_badge(catalog()["qwen3-8b"].config, "")
    wide = sum(letter >= "\u3000" for letter in texts_of(svg)[-1])
    assert wide > 4
    assert int(ET.fromstring(svg).get("width")) > 11 * wide
