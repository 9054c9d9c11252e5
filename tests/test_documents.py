"""The documents have narrow lines and working examples, and link to files that exist."""

import json
import re
from pathlib import Path

import pytest

from rope_viz import __version__
from rope_viz.models.catalog import catalog
from tests.offenders import for_each
from tests.test_architecture import FLOORS

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "benchmarks").glob("*.md")])
# assets/write_accessibility.py writes what a browser prints.
WIDE = ["accessibility.md"]
README_COMMANDS = [
    "pip install -r requirements.txt && streamlit run app.py",
    "pip install -r requirements-dev.txt && pytest",
]


def read_text(path: Path) -> str:
    """Return the text of a document."""
    return path.read_text(encoding="utf-8")


def find_relative_links(text: str) -> list[str]:
    """Return the targets of links and pictures, in Markdown or HTML, that are paths and not addresses."""
    targets = re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r'\b(?:src|srcset|href)="([^"]+)"', text)
    return [target for target in targets if not re.match(r"[a-z]+:|#", target)]


@for_each(README_COMMANDS)
def test_the_readme_has_the_two_commands(command):
    assert f"```sh\n{command}\n```\n" in read_text(ROOT / "README.md")


@for_each(DOCUMENTS, lambda path: path.name)
def test_lines_have_at_most_120_characters(path):
    lines = enumerate(read_text(path).splitlines(), 1)
    assert path.name in WIDE or [number for number, line in lines if len(line) > 120] == []


@for_each(WIDE)
def test_each_exception_for_wide_lines_is_needed(name):
    (path,) = (path for path in DOCUMENTS if path.name == name)
    assert any(len(line) > 120 for line in read_text(path).splitlines())


@for_each(DOCUMENTS, lambda path: path.name)
def test_relative_links_and_pictures_exist(path):
    missing = [link for link in find_relative_links(read_text(path)) if not (path.parent / link.split("#")[0]).exists()]
    assert missing == []


def test_readme_example_computes_its_documented_numbers():
    names = {}
    exec(re.search(r"```python\n(.*?)```", read_text(ROOT / "README.md"), re.DOTALL)[1], names)
    assert names["spec"].inv_freq().shape == (64,)
    assert f"{names['spec'].attention_factor():.4f}" == "1.1386"


def test_readme_counts_the_models_of_the_list():
    assert f"one of {len(catalog())} real models" in " ".join(read_text(ROOT / "README.md").split())


def test_the_documented_kubernetes_job_is_whole_yaml():
    yaml = pytest.importorskip("yaml")
    job = yaml.safe_load(re.search(r"```yaml\n(.*?)```", read_text(ROOT / "docs" / "scaling.md"), re.DOTALL)[1])
    (server,), (task,) = (job["spec"]["template"]["spec"][name] for name in ("initContainers", "containers"))
    assert (job["kind"], job["spec"]["completionMode"], job["spec"]["completions"]) == ("Job", "Indexed", 8)
    name, overrides = server["args"][-1].split("=", 1)
    assert (name, json.loads(overrides)["rope_parameters"]["rope_type"]) == ("--hf-overrides", "yarn")
    assert f'"$JOB_COMPLETION_INDEX/{job["spec"]["completions"]}"' in task["args"][0]
    volumes = [each["name"] for each in job["spec"]["template"]["spec"]["volumes"]]
    assert [each["name"] for each in task["volumeMounts"]] == volumes


ARCHITECTURE = read_text(ROOT / "ARCHITECTURE.md")
ROOMS = re.findall(r"^  (\w+)/ ", ARCHITECTURE, re.MULTILINE)
PATHS = sorted(set(re.findall(r"`([\w./]+(?:/|\.(?:py|js|json|md|toml)))`", ARCHITECTURE)))


def test_architecture_is_short_and_names_every_room():
    assert len(ARCHITECTURE.split()) <= 1100
    assert sorted(ROOMS) == sorted(path.parent.name for path in (ROOT / "rope_viz").glob("*/__init__.py"))


@for_each(PATHS)
def test_paths_of_the_architecture_exist(name):
    """A path begins at the root or in the package; a script is named without the room of JavaScript."""
    assert any((root / name).exists() for root in (ROOT, ROOT / "rope_viz", ROOT / "rope_viz" / "web"))


def test_architecture_has_the_order_of_the_rooms():
    (order,) = re.findall(r"^(embedding, web, .*? the layouts)$", ARCHITECTURE, re.MULTILINE | re.DOTALL)
    named = [set(floor.replace("the ", "").split(", ")) for floor in " ".join(order.split()).split(" → ")]
    assert named == [set(floor) for floor in FLOORS]


def test_the_version_is_that_of_the_changelog():
    """Files name `__version__`. Before a release it is a development version, and the citation names the last one."""
    releases = re.findall(r"^## (\S+)(?: - (\S+))?$", read_text(ROOT / "CHANGELOG.md"), re.MULTILINE)
    newest, date = releases[0]
    assert __version__ == (f"{newest}.dev0" if date == "unreleased" else newest)
    released, day = next(one for one in releases if one[1] != "unreleased")
    citation = read_text(ROOT / "CITATION.cff")
    assert f"\nversion: {released}\n" in citation
    assert f"\ndate-released: {day}\n" in citation
