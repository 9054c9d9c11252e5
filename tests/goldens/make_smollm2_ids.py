"""Write smollm2_ids.json: what transformers' tokenizer makes of 20 texts, from the GGUF file of SmolLM2.

pip install gguf; rope-viz get-model smollm2; python tests/goldens/make_smollm2_ids.py

transformers does not read tokenizer.ggml.pre, so several spaces before a digit are split in another way than by
llama.cpp and the original tokenizer. No text has them.
"""

import importlib.metadata
import json
from pathlib import Path

import transformers

from rope_viz.models.identity.local_models import MODELS

TEXTS = (
    "It is a truth universally acknowledged, that a single man in possession of a good fortune",
    "The pass key of Paris is 86556. Remember it.",
    "What is the pass key of Paris?",
    "def rotate(x, cos, sin):\n    half = x.shape[-1] // 2\n    return x[..., :half] * cos\n",
    "  two spaces first",
    "two spaces last  ",
    "one\n\ntwo\n\n\nthree",
    "tabs\tand\t\ttabs",
    "don't we're I'll they've it's I'd",
    "naïve café, Ünïcödé, straße",
    "日本語のテキスト",
    "Привет, мир! Γειά σου κόσμε",
    "🙂🙃 emoji 👩‍👩‍👧",
    "1 22 333 4444 3.14159 1e-5 0x1F",
    "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n",
    "UPPER lower MiXeD snake_case camelCase",
    "https://example.org/a?b=c&d=%20#e",
    "a" * 100,
    "∑ᵢ θᵢ = base^(−2i/d), x ∈ ℝ",
    "\u00a0no-break\u2003em space\u200bzero width",
    "",
)


def main() -> None:
    path = MODELS["smollm2"].weights
    tokenizer = transformers.AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
    rows = [{"text": text, "ids": tokenizer(text)["input_ids"]} for text in TEXTS]
    versions = {name: importlib.metadata.version(name) for name in ("transformers", "tokenizers", "gguf")}
    made = {"made_by": "make_smollm2_ids.py", "model": path.name, "versions": versions, "rows": rows}
    Path(__file__).with_name("smollm2_ids.json").write_text(json.dumps(made) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
