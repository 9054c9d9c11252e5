"""Run published functions that number the tokens of a prompt, and write layouts.json beside this file.

    python tests/goldens/make_layouts.py VLLM SGLANG     # folders of vLLM 0.33.0 and SGLang 0.5.23, as unpacked

`get_rope_index` of transformers 5.23.0 is called on a stand-in that has the config alone; so are the methods of vLLM,
taken out of their files because the package itself wants a GPU. SGLang's file needs torch only.
"""

import ast
import functools
import importlib.util
import json
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace as Plain
from typing import Any

import numpy as np
import torch

FOLDER = Path(__file__).parent
TEXT, IMAGE, VIDEO, AUDIO, VISION_START, VISION_END, AUDIO_START, AUDIO_END = 1, 2, 3, 4, 5, 6, 7, 8
CASES: list = []


def add(family: str, source: str, config: dict, positions, delta) -> None:
    values = torch.as_tensor(positions, dtype=torch.float64)
    values = [[round(float(v), 7) for v in row] for row in values]
    CASES.append({"family": family, "source": source, "config": config, "positions": values, "rope_delta": delta})


def size(piece: list, merge: int, temporal: int = 1) -> int:
    kind, what = piece
    if kind == "text":
        return what
    frames = what[0] // (temporal if kind == "video" else 1)
    return frames * (what[1] // merge) * (what[2] // merge)


def grids(layout: list, kind: str):
    found = [what for name, what in layout if name == kind]
    return torch.tensor(found) if found else None


def tokens(layout: list, merge: int, temporal: int = 1) -> tuple[torch.Tensor, torch.Tensor]:
    kinds = {"text": 0, "image": 1, "video": 2}
    types_ = [kinds[piece[0]] for piece in layout for _ in range(size(piece, merge, temporal))]
    return torch.zeros(1, len(types_), dtype=torch.long), torch.tensor([types_])


def bound(cls, config) -> Plain:
    fake = Plain(config=config)
    for name in ("get_vision_position_ids", "get_llm_pos_ids_for_vision", "get_chunked_index"):
        if hasattr(cls, name):
            setattr(fake, name, functools.partial(getattr(cls, name), fake))
    return fake


def simple(
    kind: str, name: str, layout: list, *, merge: int = 2, temporal: int = 1, stamped: bool = False, **more
) -> None:
    cls = getattr(import_module(f"transformers.models.{kind}.modeling_{kind}"), name)
    vision = Plain(
        spatial_merge_size=merge, temporal_merge_size=temporal, tokens_per_second=more.get("tokens_per_second")
    )
    ids, kinds = tokens(layout, merge, temporal)
    seconds = {"second_per_grid_ts": torch.tensor(more["second_per_grid_ts"])} if more.get("second_per_grid_ts") else {}
    videos = grids(layout, "video")
    places, delta = cls.get_rope_index(
        bound(cls, Plain(vision_config=vision)), ids, kinds, grids(layout, "image"), videos, **seconds
    )
    config = {"layout": layout, "spatial_merge_size": merge, **more}
    if temporal != 1:
        config["temporal_merge_size"] = temporal
    add(f"positions/{kind}", f"transformers {name}.get_rope_index", config, places[:, 0].T, float(delta))


def omni(
    kind: str, name: str, layout: list, seconds: list, rate: int, *, woven: bool = False, per_chunk: float = 2.0
) -> None:
    cls = getattr(import_module(f"transformers.models.{kind}.modeling_{kind}"), name)
    ids: list[int] = []
    skip = False
    lengths = [what for name_, what in layout if name_ == "audio"]
    for index, (name_, what) in enumerate(layout):
        if skip:
            skip = False
            continue
        if name_ == "text":
            ids += [TEXT] * what
        elif name_ == "audio":
            ids += [AUDIO_START, *[AUDIO] * heard(kind, what), AUDIO_END]
        elif woven and name_ == "video" and layout[index + 1][0] == "audio":
            count = size([name_, what], 2) + heard(kind, layout[index + 1][1])
            ids += [VISION_START, AUDIO_START, VIDEO, AUDIO, *[VIDEO] * (count - 2), AUDIO_END, VISION_END]
            skip = True
        else:
            ids += [VISION_START, *[IMAGE if name_ == "image" else VIDEO] * size([name_, what], 2), VISION_END]
    config = Plain(
        image_token_id=IMAGE,
        video_token_id=VIDEO,
        audio_token_id=AUDIO,
        vision_start_token_id=VISION_START,
        audio_start_token_id=AUDIO_START,
        position_id_per_seconds=rate,
        seconds_per_chunk=per_chunk,
        audio_config=Plain(n_window=50),
    )
    fake = bound(cls, config)
    fake.spatial_merge_size = 2
    ids_ = torch.tensor([ids])
    places, delta = cls.get_rope_index(
        fake,
        ids_,
        grids(layout, "image"),
        grids(layout, "video"),
        torch.ones_like(ids_),
        woven,
        torch.tensor(lengths) if lengths else None,
        torch.tensor(seconds) if seconds else None,
    )
    given = {"layout": layout, "position_id_per_seconds": rate, "spatial_merge_size": 2}
    if seconds:
        given["second_per_grids"] = seconds
    if woven:
        given |= {"use_audio_in_video": True, "seconds_per_chunk": per_chunk}
    add(f"positions/{kind}", f"transformers {name}.get_rope_index", given, places[:, 0].T, float(delta))


def heard(kind: str, length: int) -> int:
    if kind == "qwen2_5_omni":
        return ((length - 1) // 2 + 1 - 2) // 2 + 1
    from transformers.models.qwen3_omni_moe.modeling_qwen3_omni_moe import _get_feat_extract_output_lengths

    return int(_get_feat_extract_output_lengths(torch.tensor(length), 50))


LAYOUTS = (
    [["text", 2], ["image", [1, 8, 4]], ["text", 1], ["image", [1, 4, 10]], ["text", 5]],
    [["image", [1, 4, 4]], ["text", 3], ["video", [5, 4, 6]], ["text", 2]],
    [["text", 7]],
    [["text", 1], ["video", [9, 4, 4]], ["text", 1], ["image", [1, 6, 6]], ["text", 1]],
)
FRAMES = [
    ["text", 3],
    ["video", [1, 4, 6]],
    ["text", 3],
    ["video", [1, 4, 6]],
    ["text", 1],
    ["image", [1, 8, 8]],
    ["text", 2],
]


def transformers() -> None:
    for layout in LAYOUTS:
        simple("qwen2_vl", "Qwen2VLModel", layout)
        simple("paddleocr_vl", "PaddleOCRVLModel", layout)
        simple("qwen2_5_vl", "Qwen2_5_VLModel", layout, tokens_per_second=4)
        if any(kind == "video" for kind, _ in layout):
            for seconds in (0.7, 0.5, 1.0 / 3.0):
                simple("qwen2_5_vl", "Qwen2_5_VLModel", layout, tokens_per_second=2, second_per_grid_ts=[seconds])
    simple("qwen2_vl", "Qwen2VLModel", [["text", 2], ["image", [1, 6, 9]], ["text", 2]], merge=3)
    stamped = {
        "qwen3_vl": "Qwen3VLModel",
        "qwen3_vl_moe": "Qwen3VLMoeModel",
        "qwen3_5": "Qwen3_5Model",
        "qwen4_exp": "Qwen4ExpModel",
        "glm4v": "Glm4vModel",
        "glm4v_moe": "Glm4vMoeModel",
        "glm46v": "Glm46VModel",
        "glm_ocr": "GlmOcrModel",
        "cohere_compass": "CohereCompassModel",
        "cosmos3_edge": "Cosmos3EdgeModel",
    }
    for kind, name in stamped.items():
        cls_layout = FRAMES
        cls = getattr(import_module(f"transformers.models.{kind}.modeling_{kind}"), name)
        ids, kinds = tokens(cls_layout, 2)
        vision = Plain(spatial_merge_size=2)
        places, delta = cls.get_rope_index(
            bound(cls, Plain(vision_config=vision)), ids, kinds, grids(cls_layout, "image"), torch.tensor([[2, 4, 6]])
        )
        config = {"layout": cls_layout, "spatial_merge_size": 2}
        add(f"positions/{kind}", f"transformers {name}.get_rope_index", config, places[:, 0].T, float(delta))
    for layout in ([["text", 2], ["video", [6, 4, 8]], ["text", 2]], LAYOUTS[0]):
        simple("ernie4_5_vl_moe", "Ernie4_5_VLMoeModel", layout, temporal=3)
    hunyuan()
    first = [
        ["text", 3],
        ["audio", 33],
        ["text", 1],
        ["image", [1, 4, 8]],
        ["text", 1],
        ["video", [4, 4, 4]],
        ["text", 2],
    ]
    name = "Qwen2_5OmniPreTrainedModelForConditionalGeneration"
    omni("qwen2_5_omni", name, first, [0.3], 25)
    omni("qwen2_5_omni", name, [["text", 2], ["video", [3, 4, 4]], ["audio", 160], ["text", 1]], [1.0], 25, woven=True)
    omni(
        "qwen2_5_omni", name, [["video", [7, 4, 4]], ["audio", 500], ["text", 1]], [0.9], 25, woven=True, per_chunk=1.0
    )
    # A last stretch that reaches less far than an earlier one.
    far = [
        ["text", 4],
        ["video", [2, 6, 2]],
        ["audio", 500],
        ["text", 3],
        ["video", [5, 2, 6]],
        ["audio", 60],
        ["text", 2],
    ]
    omni("qwen2_5_omni", name, [["text", 3], ["video", [8, 6, 2]], ["audio", 333], ["text", 3]], [0.5], 25, woven=True)
    omni("qwen2_5_omni", name, far, [1.3, 1.0 / 3.0], 25, woven=True)
    name = "Qwen3OmniMoePreTrainedModelForConditionalGeneration"
    wide = [
        ["text", 3],
        ["video", [4, 6, 6]],
        ["audio", 60],
        ["text", 3],
        ["video", [6, 2, 2]],
        ["audio", 333],
        ["text", 2],
    ]
    omni("qwen3_omni_moe", name, wide, [0.7, 1.0], 13, woven=True)
    omni("qwen3_omni_moe", name, [["video", [1, 24, 4]], ["audio", 33], ["text", 2]], [1.0], 13, woven=True)
    omni("qwen3_omni_moe", name, first, [0.3], 13)
    omni(
        "qwen3_omni_moe", name, [["text", 2], ["video", [3, 4, 4]], ["audio", 160], ["text", 1]], [1.0], 13, woven=True
    )


def hunyuan() -> None:
    cls = import_module("transformers.models.hunyuan_vl.modeling_hunyuan_vl").HunYuanVLModel

    for sections in ([16, 16, 16, 16], [24, 24, 16]):
        layout = [["text", 2], ["image", [1, 4, 4]], ["text", 1], ["image", [1, 6, 2]], ["text", 2]]
        kinds = []
        for kind, what in layout:
            kinds += [0] * what if kind == "text" else [1] * (what[1] // 2 * (what[2] // 2 + 1) + 2)
        config = Plain(
            text_config=Plain(rope_parameters={"mrope_section": sections}), vision_config=Plain(spatial_merge_size=2)
        )
        ids = torch.zeros(1, len(kinds), dtype=torch.long)
        fake = bound(cls, config)
        places, delta = cls.get_rope_index(fake, ids, torch.tensor([kinds]), grids(layout, "image"))
        given = {"layout": layout, "spatial_merge_size": 2, "mrope_section": sections}
        source = "transformers HunYuanVLModel.get_rope_index"
        add("positions/hunyuan_vl", source, given, places[:, 0].T, float(delta))


def sglang(root: str) -> None:
    path = Path(root) / "sglang/srt/layers/rotary_embedding/mrope_rope_index.py"
    spec = importlib.util.spec_from_file_location("mrope_rope_index", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for kind in ("qwen2_vl", "qwen2_5_vl", "paddleocr_vl", "qwen3_vl"):
        for layout in (FRAMES,) if kind == "qwen3_vl" else LAYOUTS:
            ids: list[int] = []
            for index, (name, what) in enumerate(layout):
                if name == "text":
                    ids += [VISION_START if k == what - 1 and index + 1 < len(layout) else TEXT for k in range(what)]
                else:
                    ids += [IMAGE if name == "image" else VIDEO] * size([name, what], 2)
            if layout[0][0] != "text":
                continue
            timed = kind in ("qwen2_5_vl", "paddleocr_vl") and any(name == "video" for name, _ in layout)
            seconds = [0.7] if timed else None
            videos = torch.tensor([[2, 4, 6]]) if layout is FRAMES else grids(layout, "video")
            places, delta = module.get_rope_index(
                2,
                IMAGE,
                VIDEO,
                VISION_START,
                kind,
                2,
                torch.tensor([ids]),
                grids(layout, "image"),
                videos,
                torch.tensor(seconds) if seconds else None,
            )
            config = {"model_type": kind, "layout": layout, "spatial_merge_size": 2, "tokens_per_second": 2}
            config["second_per_grid_ts"] = seconds
            add("runtime/sglang", "sglang get_rope_index", config, places[:, 0].T, float(delta))


def method(root: str, file: str, name: str) -> Any:
    """A method out of a file, as a function."""
    tree = ast.parse((Path(root) / "vllm/model_executor/models" / file).read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == name:
            node.decorator_list = []
            node.returns = None
            for argument in node.args.args:
                argument.annotation = None
            space: dict = {"np": np, "torch": torch, "Iterator": Iterator}
            exec(compile(ast.Module([node], []), file, "exec"), space)
            return space[name]
    raise SystemExit(f"{file} has no {name}")


def vllm(root: str) -> None:
    def run(file: str, layout: list, spans: list, config: dict, count: int) -> None:
        function = method(root, file, "get_mrope_input_positions")
        fake = Plain(
            iter_mm_grid_thw=lambda *a: iter(spans),
            iter_mm_grid_hw=lambda *a: iter(spans),
            config=Plain(vision_config=Plain(spatial_merge_size=2)),
        )
        places, delta = function(fake, [0] * count, [])
        add("runtime/vllm", f"vllm {file} get_mrope_input_positions", config, places.T, float(delta))

    for layout in LAYOUTS[:2] + LAYOUTS[3:]:
        offset, factors, plain = 0, [], []
        for kind, what in layout:
            if kind != "text":
                grid = (what[0], what[1] // 2, what[2] // 2)
                plain.append((offset, *grid))
                factors.append((offset, *grid, 0.7 * 2 if kind == "video" else 1.0))
            offset += size([kind, what], 2)
        config = {"layout": layout, "spatial_merge_size": 2}
        seconds = {"second_per_grid_ts": [0.7], "tokens_per_second": 2}
        run("qwen2_5_vl.py", layout, factors, {**config, **seconds, "model_type": "qwen2_5_vl"}, offset)
        run("qwen2_vl.py", layout, factors, {**config, **seconds, "model_type": "qwen2_vl"}, offset)
        run("paddleocr_vl.py", layout, factors, {**config, **seconds, "model_type": "paddleocr_vl"}, offset)
        run("keye.py", layout, plain, {**config, "model_type": "keye"}, offset)
        run(
            "ernie45_vl.py",
            layout,
            plain,
            {**config, "temporal_merge_size": 1, "model_type": "ernie4_5_vl_moe"},
            offset,
        )
    images = LAYOUTS[0]
    offset, spans = 0, []
    for kind, what in images:
        if kind != "text":
            spans.append((offset, what[1] // 2, what[2] // 2))
        offset += size([kind, what], 2)
    run("isaac.py", images, spans, {"layout": images, "spatial_merge_size": 2, "model_type": "isaac"}, offset)
    layout = [["text", 2], ["image", [1, 4, 6]], ["text", 1], ["video", [3, 4, 8]], ["text", 2]]
    spans = [("image", 2, 1, 2, 3), ("video", 9, 3, 2, 4)]
    config = {"layout": layout, "spatial_merge_size": 2, "model_type": "openpangu_vl"}
    run("openpangu_vl.py", layout, spans, config, 2 + 6 + 1 + 3 * 8 + 2 * 2 + 2)


if __name__ == "__main__":
    transformers()
    vllm(sys.argv[1])
    sglang(sys.argv[2])
    about = " ".join(__doc__.split())
    text = json.dumps({"about": about, "cases": CASES}, separators=(",", ":"))
    (FOLDER / "layouts.json").write_text(text + "\n", encoding="utf-8")
    print(len(CASES), "cases,", len(text), "bytes")
