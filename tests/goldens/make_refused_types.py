"""Write refused_types.json: which nulls and wrong values each text type of transformers 5.23.0 refuses, key by key.

As make_refused.py, for every type of the list that takes one of four small configs, with fewer keys and values. Run
with transformers 5.23.0 and torch 2.13.0:

    python tests/goldens/make_refused_types.py
"""

import json
from pathlib import Path

import torch
import transformers
from make_refused import MLA, MOE, SIZES, takes
from records import read_records

HERE = Path(__file__).parent
PATH = HERE / "refused_types.json"
HEADLESS = {key: value for key, value in SIZES.items() if key != "head_dim"}
BASES = [SIZES, {**SIZES, **MOE}, {**HEADLESS, **MLA}, HEADLESS]
NULL = "layer_types rope_theta sliding_window rope_scaling rope_parameters original_max_position_embeddings head_dim "
NULL += "num_key_value_heads v_head_dim qk_rope_head_dim kv_lora_rank partial_rotary_factor max_position_embeddings"
REAL = ("head_dim", "num_key_value_heads", "hidden_size", "num_attention_heads", "v_head_dim", "qk_rope_head_dim")


def refused(kind: str, base: dict) -> dict[str, list]:
    """{key: the values of it that are refused}."""
    found: dict[str, list] = {}
    for key in dict.fromkeys((*NULL.split(), *REAL)):
        if key in MLA and key not in base:
            continue
        values = [None, 32.0] if key in REAL else [None]
        found[key] = [value for value in values if not takes(kind, {**base, key: value})]
    return {key: values for key, values in found.items() if values}


if __name__ == "__main__":
    transformers.logging.set_verbosity_error()
    rows = {}
    for kind, facts in read_records().items():
        base = next((number for number, base in enumerate(BASES) if takes(kind, base)), None)
        if "text" not in facts and not facts.get("not_text") and base is not None:
            rows[kind] = {"base": base, "refused": refused(kind, BASES[base])}
    about = {"made by": Path(__file__).name, "transformers": transformers.__version__, "torch": torch.__version__}
    lines = ",\n".join(f"{json.dumps(kind)}: {json.dumps(row)}" for kind, row in rows.items())
    PATH.write_text(f'{{"_about": {json.dumps(about)}, "bases": {json.dumps(BASES)}, "types": {{\n{lines}\n}}}}\n')
    print(len(rows), "types")
