"""`rope-viz report --all`: a site of many models, without broken links, that goes on where it was killed."""

import json
import re
import signal
import subprocess
import sys
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from urllib.parse import unquote

import pytest

from rope_viz.cli import report_all
from rope_viz.cli.main import main
from rope_viz.models.catalog import catalog
from rope_viz.pages import registry
from rope_viz.reports import report, report_site
from rope_viz.reports.report_site import IndexEntry
from tests.ui.test_render_workers import is_running
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
    assert main(["report", "--all", str(folder), "-o", str(out)]) == 0
    return out


def links(page):
    """Return the targets of a page's links and scripts that are files."""
    text = re.sub(r"<script>.*?</script>", "", page.read_text(encoding="utf-8"), flags=re.S)
    return [unquote(target) for target in re.findall(r'(?:href|src)="([^"#]+)"', text)]


def test_every_model_has_a_page_and_no_link_is_broken(folder, site):
    pages = sorted((site / "models").glob("*.html"))
    assert len(pages) == len(list(folder.rglob("config.json"))) == 7
    index = links(site / "index.html")
    assert sorted(index) == [f"models/{page.name}" for page in pages]
    for page in pages:
        assert "../index.html" in links(page)
        assert all((page.parent / target).resolve().is_file() for target in links(page))


def test_a_page_has_check_memory_and_three_pictures(site):
    text = (site / "models" / f"org-{IDS[0]}.html").read_text(encoding="utf-8")
    assert set(json.loads(re.search(r"const figures = (.*);\n", text)[1])) == {
        address.replace("/", "-") for address in report_site.PICTURES
    }
    for section in ("Config check", "Memory"):
        assert f"<h2>{section}</h2>" in text
    assert re.search(r"KV cache: [\d.]+ \w+", text)
    assert "plotly.js v" not in text


def test_the_index_says_what_was_found(site):
    text = (site / "index.html").read_text(encoding="utf-8")
    rows = dict(re.findall(r'<tr><td><a href="[^"]+">(.*?)</a></td>(.*?)</tr>', text))
    assert set(rows) == {*(f"org/{name}" for name in IDS), "org/faulty &lt;b&gt;", "bert", "flux", "cut"}
    assert "no RoPE" in rows["bert"]
    assert "not read" in rows["cut"]
    assert "error" in rows["org/faulty &lt;b&gt;"]
    limit = catalog()[IDS[0]].config["max_position_embeddings"]
    assert f"<td>{limit:,}</td>" in rows[f"org/{IDS[0]}"]
    unread = [name for name, cells in rows.items() if "not read" in cells]
    assert f"{len(unread)} could not be read" in text
    assert f"of {len(rows)} have errors or warnings" in text


def test_an_unread_config_gets_its_reason(site):
    assert "it is not JSON" in (site / "models" / "cut.html").read_text(encoding="utf-8")


def test_a_second_run_draws_only_what_is_new(folder, site, capsys):
    words = ["report", "--all", str(folder), "-o", str(site)]
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
    words = [sys.executable, "-m", "rope_viz", "report", "--all", str(names), "-o", str(out)]
    process = subprocess.Popen(words, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    for line in process.stderr:
        if "1 of 12" in line:
            break
    children = Path(f"/proc/{process.pid}/task").glob("*/children")
    workers = [pid for path in children for pid in path.read_text().split()]
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stderr.close()
    assert not (out / "index.html").exists()
    wait_until(lambda: not any(map(is_running, workers)), 60, "end of the worker processes")
    before = {path.name for path in (out / "models").glob("*.json")}
    assert 1 <= len(before) < 12
    ended = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    assert f"{len(before)} of 12 pages are there already" in ended.stderr
    assert len(links(out / "index.html")) == 12
    assert all((out / target).is_file() for target in links(out / "index.html"))


def test_a_hub_id_of_the_list_gets_the_page_of_its_model(tmp_path):
    names = ["qwen3-8b", "Qwen/Qwen3-8B", "https://huggingface.co/Qwen/Qwen3-8B"]
    file = tmp_path / "names.txt"
    file.write_text("\n".join(names), encoding="utf-8")
    assert main(["report", "--all", str(file), "-o", str(tmp_path / "site")]) == 0
    files = ["qwen3-8b", "Qwen-Qwen3-8B", "https-huggingface.co-Qwen-Qwen3-8B"]
    pages = [(tmp_path / "site" / "models" / f"{each}.html").read_text(encoding="utf-8") for each in files]
    assert pages[1] == pages[2] == pages[0]


def test_a_full_page_has_every_picture(monkeypatch, tmp_path):
    some = [picture for picture in registry.pictures() if picture.page in ("scaling", "rotation")]
    monkeypatch.setattr(registry, "pictures", lambda: some)
    entry, page = report_site.render_page("m", "m.html", IDS[0], is_full=True)
    titles = {title for _, title, _ in report.sections(report_site.read_report_request(IDS[0])[0])}
    assert all(f"<h2>{title}</h2>" in page.decode() for title in titles)
    assert entry.label == "m"


def test_a_model_that_ends_its_process_gets_a_page(monkeypatch, tmp_path):
    def run_pool(jobs, pages, workers):
        for job in jobs:
            if job.label == "bad":
                raise BrokenProcessPool
            yield job, report_all.write_page(job, pages)

    monkeypatch.setattr(report_all, "run_pool", run_pool)
    jobs = [report_all.ReportJob(name, f"{name}.html", b"{", problem="x") for name in ("a", "bad", "b")]
    entries = list(report_all.run_jobs(jobs, tmp_path))
    assert sorted((entry.label, entry.status) for entry in entries) == [
        ("a", "unread"),
        ("b", "unread"),
        ("bad", "ended"),
    ]
    assert "needed too much memory or time" in (tmp_path / "bad.html").read_text(encoding="utf-8")
    assert not (tmp_path / "bad.json").exists()


def test_pages_of_similar_names_do_not_overwrite_each_other():
    taken = set()
    names = [report_all.file_name(label, taken) for label in ("a/b", "a b", "A-B", "../", "é" * 300)]
    assert names == ["a-b.html", "a-b-2.html", "A-B-3.html", "model.html", "model-2.html"]


def test_an_entry_survives_its_record():
    entry = IndexEntry("a", "a.html", "llama", "yarn", 1, 2, 3, (1, 0, 2), "", "")
    assert report_site.read_entry(json.loads(json.dumps(entry.as_dict()))) == entry


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--all", "nowhere.txt", "-o", "out"], "nowhere.txt"),
        (["--all", ".", "-o", "out.html"], "a site is a folder"),
        (["--all", ".", "-o", "-"], "a site is a folder"),
        (["--all", ".", "-o", "out"], "no config.json in this folder"),
        (["llama-2-7b", "--all", ".", "-o", "out"], "--all takes no CONFIG"),
        (["llama-2-7b", "--full", "-o", "out.html"], "--full belongs to --all"),
        (["--all", "empty.txt", "-o", "out"], "names no model"),
    ],
)
def test_wrong_flags_give_one_line(words, reason, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.txt").write_text("# nothing\n")
    assert main(["report", *words]) == 2
    assert reason in capsys.readouterr().err


def test_a_folder_of_other_files_is_not_written_to(folder, tmp_path, capsys):
    (tmp_path / "mine.txt").write_text("x")
    assert main(["report", "--all", str(folder), "-o", str(tmp_path)]) == 2
    assert "has other files" in capsys.readouterr().err
