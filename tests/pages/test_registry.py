"""The list of pages: a mistake of a developer gets one sentence that says what to write where."""

import dataclasses
import sys
from types import ModuleType

import pytest

from rope_viz.pages import registry
from rope_viz.texts import Texts
from rope_viz.ui import state


def write_folders(root, *names):
    for name in names:
        (root / name).mkdir()
        (root / name / "__init__.py").touch()


def test_page_in_the_list_without_a_folder(tmp_path):
    write_folders(tmp_path, *(name for name in registry.ORDER if name != "decay"))
    with pytest.raises(ValueError, match=r"lists 'decay', but there is no rope_viz/pages/decay/__init__\.py"):
        registry.list_groups(tmp_path)


def test_folder_that_the_list_lacks(tmp_path):
    write_folders(tmp_path, *registry.ORDER, "turns")
    with pytest.raises(ValueError, match=r"add 'turns' to ORDER in rope_viz/pages/registry\.py"):
        registry.list_groups(tmp_path)


def test_groups_of_a_page_are_the_folders_inside_its_own(tmp_path):
    write_folders(tmp_path, *registry.ORDER)
    assert "model" in registry.list_groups(tmp_path)
    write_folders(tmp_path / "model", "runtimes", "extend")
    groups = registry.list_groups(tmp_path)
    assert list(groups) == list(registry.PAGES)
    assert groups["extend"] == "rope_viz.pages.model.extend"


def test_folder_without_a_page(monkeypatch):
    monkeypatch.setitem(sys.modules, "rope_viz.pages.turns", ModuleType("rope_viz.pages.turns"))
    with pytest.raises(ValueError, match=r'rope_viz/pages/turns/__init__\.py has no page: write PAGE = Page\("turns"'):
        registry.load_page("rope_viz.pages.turns")


def test_door_that_does_not_exist(monkeypatch):
    lab = dataclasses.replace(registry.LAYOUTS["lab"], door="labs")
    monkeypatch.setitem(registry.LAYOUTS, "lab", lab)
    with pytest.raises(ValueError, match="page lab has the door 'labs': choose one of learn, explore, model, lab"):
        registry.doors.__wrapped__()


def test_page_without_a_layout(tmp_path):
    for name in registry.ORDER:
        (tmp_path / f"{name}.py").touch()
    (tmp_path / "axes.py").unlink()
    with pytest.raises(ValueError, match=r"page axes has no layout: write pages/axes\.py"):
        state.menu.__wrapped__(tmp_path)


def test_picture_on_a_page_that_does_not_exist(monkeypatch):
    picture = dataclasses.replace(registry.picture("rotation", "mistakes"), shown_on="conversions")
    monkeypatch.setitem(registry.page("rotation").pictures, "mistakes", picture)
    with pytest.raises(ValueError, match="rotation/mistakes is shown on 'conversions', which is no page"):
        registry.pictures_on.__wrapped__("conversion")


def test_text_that_is_missing():
    with pytest.raises(KeyError, match=r"texts\.en\.toml of page scaling lacks 'titel'"):
        Texts("scaling")("titel")
    with pytest.raises(KeyError, match="'ratios_title' of the texts pairs needs a value for 'curves'"):
        Texts("pairs")("ratios_title")
    with pytest.raises(FileNotFoundError, match=r"no texts for turns: write rope_viz/pages/turns/texts\.en\.toml"):
        Texts("turns")
