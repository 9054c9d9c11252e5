"""The models of `rope-viz site`: folders and lists, without broken links, in a run that goes on where it was killed."""

import dataclasses
import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

import pytest

from rope_viz.cli import model_pages
from rope_viz.cli import site as command
from rope_viz.cli.main import main
from rope_viz.models.catalog import catalog
from rope_viz.pages import registry
from rope_viz.reports import report, report_site
from rope_viz.reports.report_site import IndexEntry
from tests.serving.test_render_workers import is_running
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
IDS = list(catalog())[:3]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with configs of every kind: good, faulty, without RoPE, unreadable, of a diffusion model."""
    found = tmp_path_factory.mktemp("many") / "configs & more"
    faulty = {**catalog()["llama-2-7b"].config, "rope_scaling": {"type": "yarn", "factor": -2.0}}
    configs = {f"org/{name}": dict(catalog()[name].config) for name in IDS}
    configs |= {"org/faulty <b>": faulty, "bert": {"model_type": "bert", "hidden_size": 768}}
    configs["flux"] = {
        "_class_name": "FluxTransformer2DModel",
        "axes_dims_rope": [16, 56, 56],
        "attention_head_dim": 128,
    }
    for name, config in configs.items():
        (found / name).mkdir(parents=True)
        (found / name / "config.json").write_text(json.dumps(config), encoding="utf-8")
    (found / "cut").mkdir()
    (found / "cut" / "config.json").write_text('{"model_type": ', encoding="utf-8")
    return found


@pytest.fixture(scope="module")
def site(folder, tmp_path_factory):
    """The site of these configs."""
    out = tmp_path_factory.mktemp("site") / "out"
    assert main(["site", str(folder), "-o", str(out)]) == 0
    return out


def links(page):
    """Return the targets of a page's links and scripts that are files."""
    text = re.sub(r"<script>.*?</script>", "", page.read_text(encoding="utf-8"), flags=re.S)
    return [unquote(target) for target in re.findall(r'(?:href|src)="([^"#]+)"', text)]


def test_every_model_has_a_page_and_no_link_is_broken(folder, site):
    pages = sorted((site / "models").glob("*.html"))
    assert len(pages) == len(list(folder.rglob("config.json"))) == 7
    index = [link for link in links(site / "models.html") if link.startswith("models/")]
    assert sorted(index) == [f"models/{page.name}" for page in pages]
    for page in pages:
        assert "../models.html" in links(page)
        assert all((page.parent / target).resolve().is_file() for target in links(page))


def test_a_page_has_check_memory_and_three_pictures(site):
    text = (site / "models" / f"{IDS[0]}.html").read_text(encoding="utf-8")
    assert set(json.loads(re.search(r"const figures = (.*);\n", text)[1])) == {
        address.replace("/", "-") for address in report_site.PICTURES
    }
    for section in ("Config check", "Memory"):
        assert f"<h2>{section}</h2>" in text
    assert re.search(r"KV cache: [\d.]+ \w+", text)
    assert "plotly.js v" not in text


def test_the_index_says_what_was_found(site):
    text = (site / "models.html").read_text(encoding="utf-8")
    rows = dict(re.findall(r'<tr><td><a href="[^"]+">(.*?)</a></td>(.*?)</tr>', text))
    assert set(rows) == {*IDS, "faulty &lt;b&gt;", "bert", "flux", "cut"}
    assert "no RoPE" in rows["bert"]
    assert "not read" in rows["cut"]
    assert "error" in rows["faulty &lt;b&gt;"]
    limit = catalog()[IDS[0]].config["max_position_embeddings"]
    assert f"<td>{limit:,}</td>" in rows[IDS[0]]
    unread = [name for name, cells in rows.items() if "not read" in cells]
    assert f"{len(unread)} could not be read" in text
    assert f"of {len(rows)} have errors or warnings" in text


def test_an_unread_config_gets_its_reason(site):
    assert "it is not JSON" in (site / "models" / "cut.html").read_text(encoding="utf-8")


def test_a_second_run_draws_only_what_is_new(folder, site, capsys):
    words = ["site", str(folder), "-o", str(site)]
    before = {path: path.stat().st_mtime_ns for path in (site / "models").iterdir()}
    assert main(words) == 0
    assert "7 of 7 pages are there already" in capsys.readouterr().err
    assert {path: path.stat().st_mtime_ns for path in (site / "models").iterdir()} == before
    extra = folder / "extra"
    extra.mkdir()
    (extra / "config.json").write_text(json.dumps(dict(catalog()[IDS[0]].config)), encoding="utf-8")
    assert main(words) == 0
    assert "1 of 1: extra" in capsys.readouterr().err
    (extra / "config.json").unlink()
    assert main(words) == 0
    assert not (site / "models" / "extra.html").exists()
    assert not (site / "models" / "extra.json").exists()


def test_a_killed_run_goes_on(tmp_path):
    names, out = tmp_path / "names.txt", tmp_path / "site"
    names.write_text("# a list\n" + "\n".join(list(catalog())[:12]), encoding="utf-8")
    words = [sys.executable, "-m", "rope_viz", "site", "--list", str(names), "-o", str(out)]
    process = subprocess.Popen(words, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    for line in process.stderr:
        if "1 of 12" in line:
            break
    children = Path(f"/proc/{process.pid}/task").glob("*/children")
    workers = [pid for path in children for pid in path.read_text().split()]
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stderr.close()
    assert not (out / "models.html").exists()
    wait_until(lambda: not any(map(is_running, workers)), 60, "end of the worker processes")
    before = {path.name for path in (out / "models").glob("*.json")}
    assert 1 <= len(before) < 12
    ended = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    assert f"{len(before)} of 12 pages are there already" in ended.stderr
    listed = links(out / "models.html")
    assert len([target for target in listed if target.startswith("models/")]) == 12
    assert all((out / target).is_file() for target in listed)


def test_a_hub_id_of_the_list_gets_the_page_of_its_model(tmp_path):
    names = ["qwen3-8b", "Qwen/Qwen3-8B", "https://huggingface.co/Qwen/Qwen3-8B"]
    file = tmp_path / "names.txt"
    file.write_text("\n".join(names), encoding="utf-8")
    assert main(["site", "--list", str(file), "-o", str(tmp_path / "site")]) == 0
    files = ["qwen3-8b", "qwen3-8b-2", "qwen3-8b-3"]
    pages = [(tmp_path / "site" / "models" / f"{each}.html").read_text(encoding="utf-8") for each in files]
    assert pages[1].replace("qwen3-8b-2.png", "qwen3-8b.png") == pages[0]


def test_a_full_page_has_every_picture(monkeypatch, tmp_path):
    some = [picture for picture in registry.pictures() if picture.page in ("scaling", "rotation")]
    monkeypatch.setattr(registry, "pictures", lambda: some)
    entry, page = report_site.render_page("m", "m.html", IDS[0], is_full=True)
    titles = {title for _, title, _ in report.sections(report_site.read_report_request(IDS[0])[0])}
    assert all(f"<h2>{title}</h2>" in page.decode() for title in titles)
    assert entry.label == "m"


def test_a_model_that_ends_its_process_gets_a_page(monkeypatch, tmp_path):
    monkeypatch.setattr(model_pages, "write_or_fail", "tests.cli.ending_jobs:write_or_end")
    jobs = [model_pages.ReportJob(name, f"{name}.html", b"{", problem="x") for name in ("a", "bad", "b")]
    pages = list(model_pages.run_jobs(jobs, tmp_path))
    assert sorted((page.entry.label, page.entry.status) for page in pages) == [
        ("a", "unread"),
        ("b", "unread"),
        ("bad", "ended"),
    ]
    assert "needed too much memory or time" in (tmp_path / "models" / "bad.html").read_text(encoding="utf-8")
    assert not (tmp_path / "models" / "bad.json").exists()


def test_pages_of_similar_names_do_not_overwrite_each_other():
    taken = set()
    names = [model_pages.file_name(label, taken) for label in ("a/b", "a b", "A-B", "../", "é" * 300)]
    assert names == ["a-b.html", "a-b-2.html", "A-B-3.html", "model.html", "model-2.html"]


def test_an_entry_survives_its_record():
    entry = IndexEntry("a", "a.html", "llama", "yarn", 1, 2, 3, (1, 0, 2), "", "")
    assert report_site.read_entry(json.loads(json.dumps(entry.as_dict()))) == entry


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--list", "nowhere.txt", "-o", "out"], "nowhere.txt: No such file"),
        (["--list", "bytes.txt", "-o", "out"], "bytes.txt: 'utf-8' codec"),
        ([".", "-o", "out.html"], "a site is a folder"),
        ([".", "-o", "-"], "a site is a folder"),
        ([".", "-o", "out"], "no config.json in this folder"),
        (["--list", "empty.txt", "-o", "out"], "names no model"),
    ],
)
def test_wrong_flags_give_one_line(words, reason, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.txt").write_text("# nothing\n")
    (tmp_path / "bytes.txt").write_bytes(b"\xff")
    assert main(["site", *words]) == 2
    assert reason in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--all", "configs", "-o", "out"], "rope-viz site configs -o out"),
        (["--all", "my list.txt", "-o", "out"], "rope-viz site --list 'my list.txt' -o out"),
        (["--all", "configs", "-o", "out", "--full", "--hub"], "rope-viz site configs -o out --full --hub"),
        (["llama-2-7b", "--all", "x", "--language", "zh", "-o", "o"], "rope-viz site --list x -o o --language zh"),
        (["llama-2-7b", "--full", "-o", "out.html"], "rope-viz site"),
    ],
)
def test_report_names_the_command_that_took_its_flag(words, expected, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "configs").mkdir()
    assert main(["report", *words]) == 2
    output = capsys.readouterr()
    assert expected in output.err
    assert output.err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["configs"]
    assert output.out == ""


def test_names_of_a_list_are_paths_ids_and_folders(tmp_path):
    """What cannot be read has a reason, and no label has a private path."""
    config = json.dumps(dict(catalog()[IDS[0]].config))
    for name in ("many/a/model/config.json", "many/b/model/config.json", "many/c.json", "private/mine/config.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(config)
    names = [IDS[1], tmp_path / "many", tmp_path / "private" / "mine", tmp_path / "private" / "gone.json", "org/none"]
    (tmp_path / "list.txt").write_text("\n# comment\n" + "\n".join(map(str, names)) + "\n")
    found = {model.label: model for model in command.read_list(tmp_path / "list.txt")}
    assert [*found] == [IDS[1], "c", "a/model", "b/model", "mine", "gone.json", "none"]
    assert found[IDS[1]].content == IDS[1]
    assert all("no such file" in found[name].problem for name in ("gone.json", "none"))
    assert all(not found[name].problem for name in ("c", "a/model", "mine"))


def test_single_config_that_is_missing_ends_the_command(tmp_path):
    with pytest.raises(ValueError, match="no such file"):
        command.list_models([str(tmp_path / "config.json")])


def test_page_without_its_badge_is_written_again(tmp_path, monkeypatch):
    monkeypatch.setattr(model_pages, "render_model_preview", lambda source, public: b"PNG")
    job = model_pages.ReportJob("a", "a.html", IDS[0])
    made = model_pages.write_page(job, tmp_path)
    assert model_pages.read_record(tmp_path, job) == made
    assert made.badge == catalog()[IDS[0]].name
    for name in ("badges/a.svg", "previews/a.png"):
        content = (tmp_path / name).read_bytes()
        (tmp_path / name).unlink()
        assert model_pages.read_record(tmp_path, job) is None
        (tmp_path / name).write_bytes(content)
    other = dataclasses.replace(job, public="https://example.org")
    assert model_pages.read_record(tmp_path, other) is None
    model_pages.write_page(job, tmp_path, "failed")
    assert not (tmp_path / "badges" / "a.svg").exists()


def test_a_folder_of_other_files_is_not_written_to(folder, tmp_path, capsys):
    (tmp_path / "mine.txt").write_text("x")
    assert main(["site", str(folder), "-o", str(tmp_path)]) == 2
    assert "has other files" in capsys.readouterr().err
