"""A transformer of a diffusion pipeline: its axes are a table and a picture, and it keeps no KV cache."""

import json

import numpy as np
import pytest

from rope_viz.cli.main import main

# transformer/config.json of Wan 2.1 1.3B, in the form of Diffusers.
WAN = {
    **{"_class_name": "WanTransformer3DModel", "attention_head_dim": 128, "num_attention_heads": 12},
    **{"num_layers": 30, "ffn_dim": 8960, "in_channels": 16, "out_channels": 16, "patch_size": [1, 2, 2]},
    **{"rope_max_seq_len": 1024, "text_dim": 4096, "qk_norm": "rms_norm_across_heads"},
}


@pytest.fixture
def wan(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(WAN))
    return str(path)


def test_it_has_no_cache(wan, capsys):
    assert main(["memory", wan, "--length", "131072", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["kv_cache_bytes"], found["parameters"]) == (0, None)
    assert main(["memory", wan, "--length", "131072"]) == 0
    assert "KV cache: none, a diffusion model" in capsys.readouterr().out


def test_table_has_every_axis(wan, capsys):
    """Wan: 44 channels for time, 42 for height and 42 for width, each with its own ladder over 10,000."""
    assert main(["table", wan, "--json"]) == 0
    part = json.loads(capsys.readouterr().out)["parts"]["transformer"]
    assert part["axes"] == ["t", "h", "w"]
    right, start = np.zeros((64, 3)), 0
    for axis, channels in enumerate((44, 42, 42)):
        pairs = channels // 2
        right[start : start + pairs, axis] = 10_000.0 ** (-np.arange(pairs) * 2 / channels)
        start += pairs
    np.testing.assert_allclose(part["inv_freq"], right, rtol=1e-9)
    assert main(["table", wan, "--csv"]) == 0
    assert capsys.readouterr().out.splitlines()[1].startswith("transformer,0,1")


def test_figure_draws_its_axes(wan, tmp_path, capsys):
    assert main(["figure", "axes/speeds", wan, "-o", str(tmp_path / "speeds.svg")]) == 0
    assert "WanTransformer3DModel" in (tmp_path / "speeds.svg").read_text()
    assert main(["figure", "axes/speeds", wan, "--layer", "z", "-o", str(tmp_path / "z.svg")]) == 2
    assert "--layer must be one of h, w, t" in capsys.readouterr().err


def test_unknown_class_is_named(tmp_path, capsys):
    (tmp_path / "config.json").write_text('{"_class_name": "NoSuchTransformer"}')
    assert main(["table", str(tmp_path / "config.json")]) == 2
    assert "NoSuchTransformer" in capsys.readouterr().err
