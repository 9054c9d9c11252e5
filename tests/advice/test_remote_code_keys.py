"""The check explains keys that only the remote code of a model reads."""

import pytest

from rope_viz.advice.lint import check
from tests.configs import QWEN_7B


def test_dynamic_ntk_of_qwens_remote_code_is_explained():
    """get_ntk_alpha of its modeling_qwen.py: 2^ceil(log2(n / 8192) + 1) - 1 is 3 at 16,384 and 7 at 32,768."""
    (found,) = [one for one in check({**QWEN_7B, "use_dynamic_ntk": True}) if one.rule == "remote-dynamic-ntk"]
    assert "read only by Qwen's own remote code. Beyond 8,192 tokens" in found.message
    assert "α 3 up to 16,384 tokens and 7 up to 32,768" in found.message
    # The slowest pair is divided by α: (3^(128/126))^(126/128).
    assert found.effect.pair == 63
    assert found.effect.ratio == pytest.approx(3.0)
