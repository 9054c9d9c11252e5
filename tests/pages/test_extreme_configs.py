"""Every page shows configs at the limits of what can be computed."""

import json
from pathlib import Path

import pytest

from rope_viz.ui.session import KEY
from tests.configs import llama

pytestmark = pytest.mark.slow

# Learn shows its own models.
PAGES = sorted(
    {path.stem for path in (Path(__file__).parents[2] / "pages").glob("[a-z]*.py")}
    - {"learn", "home", "lab", "gallery", "differences"}
)
EXTREMES = {
    "one pair": {"head_dim": 2},
    "the largest head": {"head_dim": 4096},
    "one token": {"max_position_embeddings": 1},
    "the longest": {"max_position_embeddings": 1 << 31},
    "base just above 1": {"rope_theta": 1.0000001},
    "the largest base": {"rope_theta": 1e30},
    "no attention": {"rope_scaling": {"rope_type": "yarn", "factor": 4.0, "attention_factor": 0}},
    "turned attention": {"rope_scaling": {"rope_type": "yarn", "factor": 4.0, "attention_factor": -1e9}},
    "factor too large": {"rope_scaling": {"rope_type": "linear", "factor": 1e9}},
    "factor too small": {"rope_scaling": {"rope_type": "dynamic", "factor": 1e-9}},
    "divisors at both ends": {
        "original_max_position_embeddings": 1,
        "rope_scaling": {"rope_type": "longrope", "short_factor": [1e-9, 1e9] * 32, "long_factor": [1e9] * 64},
    },
    "betas at both ends": {"rope_scaling": {"rope_type": "yarn", "factor": 1e9, "beta_fast": 1e9, "beta_slow": 1e-9}},
}


@pytest.mark.parametrize("page", PAGES)
def test_extreme_configs_break_no_page(open_page, page):
    app = open_page(page)
    for name, change in EXTREMES.items():
        field = next(item for item in app.text_area if item.key.startswith("upload.text"))
        field.set_value(json.dumps({**llama(rope_theta=1e4), **change}))
        next(item for item in app.button if item.label == "Use this config").click()
        app.run()
        assert not app.exception, f"{page}, {name}: {app.exception[0].value}"
        assert len(app.title) == 1, f"{page}, {name}"
        assert app.session_state[KEY].own.config == {**llama(rope_theta=1e4), **change}, f"{name} was not used"
