"""In a notebook `figures.<module>` is available without a second import."""

import importlib

import pytest

from rope_viz import figures


def test_figures_modules_are_listed_and_lazily_loaded():
    assert {"compared", "method_curves", "wavelengths"} <= set(dir(figures))
    for name in dir(figures):
        assert getattr(figures, name) is importlib.import_module(f"rope_viz.figures.{name}")
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        figures.nothing  # noqa: B018
