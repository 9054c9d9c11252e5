"""What the check says of keys that only the code that travels with a model reads."""

import pytest

from rope_viz.advice.lint import check

QWEN1 = {
    **{"model_type": "qwen", "hidden_size": 4096, "num_attention_heads": 32, "kv_channels": 128, "seq_length": 8192},
    **{"max_position_embeddings": 8192, "rotary_emb_base": 10000, "rotary_pct": 1.0, "use_dynamic_ntk": False},
}


def test_what_qwens_own_code_does_beyond_its_length_is_said():
    """get_ntk_alpha of its modeling_qwen.py: 2^ceil(log2(n / 8192) + 1) - 1 is 3 at 16,384 and 7 at 32,768."""
    (found,) = [one for one in check({**QWEN1, "use_dynamic_ntk": True}) if one.rule == "remote-dynamic-ntk"]
    assert "read only by Qwen's own remote code. Beyond 8,192 tokens" in found.message
    assert "α 3 up to 16,384 tokens and 7 up to 32,768" in found.message
    # The slowest pair is divided by α: (3^(128/126))^(126/128).
    assert found.effect.pair == 63
    assert found.effect.ratio == pytest.approx(3.0)
