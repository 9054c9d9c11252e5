"""`rope-viz site`: a folder whose links all work from a plain file server, and that leaves other files alone."""

import contextlib
import functools
import http.server
import re
import threading
import urllib.error
import urllib.request
from urllib.parse import unquote, urldefrag, urljoin

import pytest

from rope_viz.cli import site as command
from rope_viz.cli.main import main
from rope_viz.models.catalog import catalog

MODELS = ("qwen3-8b-yarn", "phi-4-mini")
PUBLIC = "https://example.org/rope"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of a site of two models, with its address."""
    out = tmp_path_factory.mktemp("www") / "some where" / "rope"
    assert main(["site", *MODELS, "-o", str(out), "--public-url", f"{PUBLIC}/"]) == 0
    return out


class Quiet(http.server.SimpleHTTPRequestHandler):
    """The file server of Python without its log."""

    def log_message(self, *args):
        """Write nothing."""


@contextlib.contextmanager
def serve(folder):
    """Yield the address of a plain file server for a folder."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


def find_links(text):
    """Return the targets in a page: links, scripts, images and its link preview."""
    text = re.sub(r"(<script[^>]*>).*?</script>", r"\1", text, flags=re.S)
    return re.findall(r'(?:href|src)="([^"]+)"|property="og:image" content="([^"]+)"', text)


@pytest.mark.slow
def test_every_link_works_below_a_path_of_a_plain_file_server(site):
    with serve(site.parents[1]) as root:
        start = urljoin(root, "some%20where/rope/")
        left, seen, problems = [start], {}, []
        while left:
            address = left.pop()
            page, anchor = urldefrag(address)
            if page not in seen:
                try:
                    with urllib.request.urlopen(page) as answer:
                        is_page = answer.headers.get_content_type() == "text/html"
                        seen[page] = answer.read().decode() if is_page else ""
                except urllib.error.HTTPError as error:
                    problems.append((address, error.code))
                    continue
                targets = [unquote(first or other) for first, other in find_links(seen[page])]
                near = [each.replace(f"{PUBLIC}/", start) for each in targets]
                left += [urljoin(page, each) for each in near]
            if not address.startswith(start) or (anchor and f'id="{unquote(anchor)}"' not in seen[page]):
                problems.append((address, "another host, or no such anchor"))
        assert problems == []
    served = {unquote(page.removeprefix(start)) for page in seen}
    assert {"", "learn.html", "differences.html", "models.html", "plotly.js"} < served
    assert {f"models/{each}.html" for each in MODELS} < served
    assert {f"badges/{each}.svg" for each in MODELS} < served
    assert {f"previews/{each}.png" for each in MODELS} < served


@pytest.mark.slow
def test_links_are_relative_and_ten_models_have_room(site):
    for page in site.rglob("*.html"):
        targets = [first for first, _ in find_links(page.read_text(encoding="utf-8")) if first]
        assert [each for each in targets if each.startswith(("/", "http"))] == (
            [f"{PUBLIC}/"] if page.name == "404.html" else []
        )
    sizes = {path.relative_to(site).as_posix(): path.stat().st_size for path in site.rglob("*") if path.is_file()}
    of_models = {name: size for name, size in sizes.items() if any(each in name for each in MODELS)}
    shared = sum(sizes.values()) - sum(of_models.values())
    assert shared + 10 * sum(of_models.values()) / len(MODELS) < 15e6


@pytest.mark.slow
def test_another_run_keeps_what_is_not_its_own(site, capsys):
    """A second run with another list removes the first one's pages, and nothing else."""
    (site / "CNAME").write_text("example.org")
    assert main(["site", MODELS[0], "-o", str(site)]) == 0
    assert "1 of 1 pages are there already" not in capsys.readouterr().err, "the address is part of each page"
    assert [path.name for path in (site / "models").glob("*.html")] == [f"{MODELS[0]}.html"]
    assert [path.name for path in (site / "badges").iterdir()] == [f"{MODELS[0]}.svg"]
    assert (site / "CNAME").read_text() == "example.org"
    text = (site / "index.html").read_text(encoding="utf-8")
    assert 'property="og:image" content="previews/home.png"' in text
    assert "og:url" not in text
    (site / "models" / f"{MODELS[1]}.html").write_text("mine")
    assert main(["site", *MODELS, "-o", str(site)]) == 2
    assert f"{MODELS[1]}.html is not from `rope-viz site`" in capsys.readouterr().err
    assert (site / "models" / f"{MODELS[1]}.html").read_text() == "mine"


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["nowhere"], "nowhere: no such file, and no such model in the list"),
        (["--public-url", "example.org"], "--public-url must be like https://"),
        (["llama-2-7b", "-o", "full"], "full has other files: move them, or name another folder"),
        (["llama-2-7b", "-o", "full/file"], "full/file is a file, and a folder of this name is needed"),
        (["llama-2-7b", "-o", "full/file/site"], "Not a directory"),
        ([""], "the name is empty"),
    ],
)
def test_unusable_folder_name_or_address_is_refused(words, reason, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("mine")
    assert main(["site", *(words if "-o" in words else [*words, "-o", "site"])]) == 2
    assert reason in capsys.readouterr().err
    assert not (tmp_path / "site").exists()
    assert (tmp_path / "full" / "file").read_text() == "mine"


def test_path_of_a_config_is_in_no_label(tmp_path):
    for path in (tmp_path / "private" / "my model" / "config.json", tmp_path / "private" / "other.json"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text('{"model_type": "llama"}')
    for name, label in (("private/my model", "my model"), ("private/other.json", "other")):
        assert [found for found, _ in command.find_models(str(tmp_path / name))] == [label]


def test_usual_models_are_ten_of_the_list():
    assert len({*command.USUAL} & {*catalog()}) == 10
