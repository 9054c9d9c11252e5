"""Fifty steps of the random walk, the same in every run; run walk.py by hand for longer walks."""

import importlib.util
from pathlib import Path

SEED = 5
STEPS = 50


def load():
    """Import walk.py, which is a script."""
    spec = importlib.util.spec_from_file_location("rope_viz_walk", Path(__file__).with_name("walk.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_fifty_random_steps_break_nothing(visit):
    """Without the slow steps: killing the server and throttling the network."""
    view = visit(watched=True).open("/")
    walk = load().Walk(view, SEED, rare=dict.fromkeys(("theme", "width", "model", "drop", "swipe"), 1))
    for _ in range(STEPS):
        walk.step()
    assert len(walk.steps) == STEPS
