"""Published configs dropped on the page My model: model, verdict, and a file that loads."""

import json

from playwright.sync_api import expect

from rope_viz.models.model_config import from_config
from tests.configs import QWEN3_8B

KIMI_K2 = {
    "model_type": "kimi_k2",
    "hidden_size": 7168,
    "num_attention_heads": 64,
    "qk_rope_head_dim": 64,
    "qk_nope_head_dim": 128,
    "kv_lora_rank": 512,
    "max_position_embeddings": 131072,
    "rope_theta": 50000.0,
    "rope_scaling": {
        **{"type": "yarn", "factor": 32.0, "beta_fast": 1.0, "beta_slow": 1.0, "mscale": 1.0, "mscale_all_dim": 1.0},
        "original_max_position_embeddings": 4096,
    },
}


def test_dropped_config_gets_a_verdict_and_a_loadable_file(visit):
    view = visit().open("/model?extend.tab=runtimes")
    view.drop(KIMI_K2)
    view.page.wait_for_url("**model=custom**")
    expect(view.page.locator(".st-key-facts")).to_contain_text("base 50,000")
    view.settle()
    main = view.page.locator("[data-testid=stMain]")
    expect(main.get_by_text("not known").first).to_be_visible()
    with view.page.expect_download() as caught:
        main.get_by_role("button", name="Download config.json").click()
    written = json.loads(caught.value.path().read_bytes())
    assert written.keys() >= KIMI_K2.keys() - {"rope_scaling"}
    spec = from_config(written)[""]
    assert (spec.pairs, spec.base, spec.scaling.name) == (32, 50_000.0, "yarn")
    assert {"rope_parameters", "rope_scaling"} & written.keys()
    assert view.errors == []


def test_long_list_of_quantised_layers_does_not_stop_a_config(visit):
    layers = [f"model.layers.{layer}.mlp.experts.{expert}.down_proj" for layer in range(94) for expert in range(1100)]
    view = visit().open("/model")
    view.drop(QWEN3_8B | {"quantization_config": {"quant_method": "compressed-tensors", "ignore": layers}})
    view.page.wait_for_url("**model=custom**")
    note = view.page.get_by_text("Long lists of your config were not loaded: ignore.", exact=False)
    expect(note.first).to_be_attached()


def test_files_dropped_together_are_one_model(visit):
    quantization = {"quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8", "exclude_modules": ["lm_head"]}}
    files = {"hf_quant_config.json": quantization, "config.json": QWEN3_8B}
    view = visit().open("/model")
    view.page.locator("[data-testid=stFileUploader] input[type=file]").first.set_input_files(
        [
            {"name": name, "mimeType": "application/json", "buffer": json.dumps(content).encode()}
            for name, content in files.items()
        ]
    )
    view.page.wait_for_url("**model=custom**")
    view.settle()
    main = view.page.locator("[data-testid=stMain]")
    # 6.95 billion weights of the layers in 8 bits, 1.24 billion of embeddings, head and norms in 16.
    expect(main.get_by_text("9.44 GB").first).to_be_attached()
    assert view.errors == []
