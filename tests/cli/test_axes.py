"""The commands and models with several axes: what `runtimes` and `check` say of them."""

import json
from pathlib import Path

from rope_viz.cli.main import main
from rope_viz.multi_axis.catalog import axes_catalog


def file_of(id: str, folder: Path) -> str:
    path = folder / "config.json"
    path.write_text(json.dumps(dict(axes_catalog()[id].config)))
    return str(path)


def test_runtimes_explains_sections_of_each_runtime(capsys, tmp_path) -> None:
    assert main(["runtimes", file_of("qwen3-vl-8b", tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "t 24, h 20, w 20 interleaved" in out
    assert "pairs 61, 62 have zero frequency" in out
    assert "mlx-vlm" in out


def test_runtimes_as_json_holds_the_axes_of_each_runtime(capsys, tmp_path) -> None:
    assert main(["runtimes", file_of("qwen2.5-vl-7b", tmp_path), "--json"]) == 0
    found = {(one["runtime"], one["version"].split(" ")[0]): one for one in json.loads(capsys.readouterr().out)}
    assert found["transformers", "5.24.0"]["axes"]["text_behind_a_film"] == 5.0
    assert found["transformers", "4.57.6"]["axes"]["times"] == [0.0, 2.0, 4.0, 6.0]
    assert found["llama.cpp", "0c1e57098"]["axes"]["pairs"] == {"t": 16, "h": 24, "w": 24}
    assert "inv_freq" not in found["mlx-vlm", "0.7.10"]
    assert "axes" not in found["transformers", "4.52.4"]


def test_a_model_with_one_axis_has_one_table(capsys) -> None:
    assert main(["runtimes", "llama-3.1-8b"]) == 0
    assert "axes of its positions" not in capsys.readouterr().out


def test_a_diffusion_transformer_has_no_server(capsys, tmp_path) -> None:
    assert main(["runtimes", file_of("flux.1-dev", tmp_path)]) == 2
    assert "FluxTransformer2DModel belongs to a diffusion pipeline" in capsys.readouterr().err


def test_check_reads_diffusers_configs_and_encoders(capsys, tmp_path) -> None:
    assert main(["check", file_of("flux.1-dev", tmp_path)]) == 0
    assert "No problems found." in capsys.readouterr().out
    assert main(["check", file_of("ernie-image", tmp_path)]) == 0
    assert "In the published code tokens of the" in capsys.readouterr().out
    assert main(["check", file_of("v-jepa2-vit-l", tmp_path)]) == 0
    assert "The model was trained so." in capsys.readouterr().out


def test_check_measures_how_far_hunyuan_is_from_a_rotation(capsys, tmp_path) -> None:
    assert main(["check", file_of("hunyuan-ocr", tmp_path)]) == 1
    out = capsys.readouterr().out
    assert "In transformers image tokens are sheared, not rotated" in out
    assert "(no-rotation)" in out
