"""Write verify.json: what the rotary modules of small models with random weights hold in transformers 5.23.0.

Every model is saved, loaded again and looked into by the snippet that `rope-viz extend` prints. Beside them small GGUF
files as the gguf package writes them, packed. Run with transformers 5.23.0, torch 2.13.0 and gguf, in the project's
folder:

    python tests/goldens/make_verify.py
"""

import base64
import copy
import json
import os
import tempfile
import zlib
from pathlib import Path

import gguf
import numpy as np
import transformers
from transformers import AutoConfig, AutoModelForCausalLM

from rope_viz.advice.plan.runtime_instructions import find_snippet

PATH = Path(__file__).with_name("verify.json")
SMALL = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_attention_heads": 4,
    "vocab_size": 128,
    "num_hidden_layers": 2,
}
SMALL |= {
    "pad_token_id": 0,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "max_position_embeddings": 4096,
    "rope_theta": 10000.0,
}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 1024}
LLAMA3 = {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
CONFIGS = [
    {"model_type": "llama", **SMALL},
    {"model_type": "qwen3", **SMALL, "rope_scaling": YARN},
    {"model_type": "qwen3", **SMALL, "rope_scaling": {**YARN, "attention_factor": 1.0}},
    {"model_type": "llama", **SMALL, "rope_scaling": {**LLAMA3, "original_max_position_embeddings": 1024}},
    {"model_type": "mistral", **SMALL, "rope_scaling": {"rope_type": "linear", "factor": 2.0}},
    {"model_type": "glm4", **SMALL, "partial_rotary_factor": 0.5, "rope_scaling": YARN},
]


FILES = {
    "plain": {"head_dim": 128, "base": 1e6, "context": 40960},
    "yarn": {"head_dim": 128, "base": 1e6, "context": 131072, "type": "yarn", "factor": 4.0, "original": 32768},
    "linear": {"head_dim": 64, "base": 1e4, "context": 8192, "type": "linear", "factor": 2.0, "original": 4096},
    "divisors": {"head_dim": 64, "base": 1e4, "context": 4096, "divisors": [1.0 + 0.25 * i for i in range(32)]},
}


def gguf_file(path: str, given: dict) -> str:
    """A file with these keys, a vocabulary of 5,000 and a tensor, packed as text."""
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(given["context"])
    writer.add_embedding_length(4 * given["head_dim"])
    writer.add_head_count(4)
    writer.add_rope_dimension_count(given["head_dim"])
    writer.add_rope_freq_base(given["base"])
    writer.add_token_list([f"token {i}" for i in range(5000)])
    writer.add_token_scores([0.5] * 5000)
    if "type" in given:
        writer.add_rope_scaling_type(gguf.RopeScalingType(given["type"]))
        writer.add_rope_scaling_factor(given["factor"])
        writer.add_rope_scaling_orig_ctx_len(given["original"])
    writer.add_tensor("first", np.ones((3, 5), np.float32))
    if "divisors" in given:
        writer.add_tensor("rope_freqs.weight", np.asarray(given["divisors"], np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return base64.b64encode(zlib.compress(Path(path).read_bytes(), 9)).decode()


def held(config: dict) -> dict:
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(**copy.deepcopy(config)))
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(f"{folder}/model")
        before = os.getcwd()
        os.chdir(folder)
        exec(find_snippet("transformers", config), {})
        os.chdir(before)
        return json.loads((Path(folder) / "inv_freq.json").read_text())


if __name__ == "__main__":
    rows = [{"config": config, "held": held(config)} for config in CONFIGS]
    with tempfile.TemporaryDirectory() as folder:
        files = {name: gguf_file(f"{folder}/{name}.gguf", given) for name, given in FILES.items()}
    about = {"made by": Path(__file__).name, "transformers": transformers.__version__, "gguf": gguf.__name__}
    PATH.write_text(json.dumps({"_about": about, "rows": rows, "files": files}, indent=1) + "\n")
