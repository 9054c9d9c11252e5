"""Reports say what `rope-viz extend` says: the verdict, its sentence and how sure it is."""

import html
import json

import pytest

from rope_viz.advice.plan.verdict import make_verdict
from rope_viz.cli.main import main
from rope_viz.models.catalog import catalog
from rope_viz.pages.model import extend
from rope_viz.reports import report, report_site

SOURCES = {
    "list": "qwen3-8b",
    "file": json.dumps(catalog()["llama-3.1-8b"].whole).encode(),
    "faulty": json.dumps({**catalog()["llama-2-7b"].whole, "rope_scaling": {"type": "yarn"}}).encode(),
}


def extend_command(source, tmp_path, capsys):
    """Return what `rope-viz extend --json` prints for a model, the length and the runtime of its report."""
    request, _ = report_site.read_report_request(source)
    file = tmp_path / "config.json"
    if isinstance(source, bytes):
        file.write_bytes(source)
    name = source if isinstance(source, str) else str(file)
    length, runtime = request[extend.TARGET], request[extend.RUNTIMES]
    main(["extend", name, "--to", str(length), "--runtime", runtime, "--json"])
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("name", SOURCES)
def test_a_page_has_the_verdict_of_the_command_line(name, tmp_path, capsys):
    source = SOURCES[name]
    told = extend_command(source, tmp_path, capsys)
    _, page = report_site.render_page("model", "model.html", source)
    text = html.unescape(page.decode())
    verdict = told["verdict"]
    assert f"<h2>For {told['need']:,} tokens</h2><h3>{verdict['headline']}</h3>" in text
    mark = verdict["wrong"] or verdict["words"]
    assert f">{mark}</p>" in text
    for sentence in filter(None, (verdict["reason"], verdict["measured"])):
        assert f"<p>{sentence}</p>" in text
    for one in told["runtimes"].values():
        assert f"<pre>{one['command']}</pre>" in text
        assert f"<p>{one['proof']}</p>" in text


def test_a_faulty_config_looks_wrong_everywhere(tmp_path, capsys):
    told = extend_command(SOURCES["faulty"], tmp_path, capsys)
    verdict = told["verdict"]
    assert verdict["wrong"] == "Wrong config: 2 errors"
    _, page = report_site.render_page("model", "model.html", SOURCES["faulty"])
    assert b'<p class="sure lossy">Wrong config: 2 errors</p>' in page
    file = str(tmp_path / "config.json")
    main(["extend", file, "--to", str(told["need"]), "--runtime", "vllm"])
    assert f"{verdict['headline']}. Wrong config: 2 errors.\n" in capsys.readouterr().out
    assert main(["check", file]) == 2
    assert capsys.readouterr().out.count(": error: ") == 2


def test_a_right_config_is_not_called_wrong(tmp_path, capsys):
    assert extend_command("qwen3-8b", tmp_path, capsys)["verdict"]["wrong"] == ""


def test_a_runtime_that_cannot_do_it_is_in_the_verdict(capsys):
    assert main(["extend", "internlm2.5-7b", "--to", "32k", "--runtime", "sglang", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["verdict"]["wrong"] == "SGLang 0.5.23 cannot do this"


def test_markdown_has_the_verdict():
    request, _ = report_site.read_report_request("qwen3-8b")
    verdict = make_verdict(extend.answer(request))
    lines = report.verdict_lines(request)
    assert lines[0] == "## For 131,072 tokens"
    assert f"**{report.escaped(verdict.headline)}.** {verdict.words}." in lines
    assert "```sh" in lines
