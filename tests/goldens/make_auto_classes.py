"""Write auto_classes.json: the Auto class of transformers 5.24.0 that loads each model type with all of its parts.

Types of AutoModelForCausalLM and types without any Auto class are left out. Run with transformers 5.24.0:

    python tests/goldens/make_auto_classes.py
"""

import json
from pathlib import Path

from records import read_records
from transformers.models.auto import modeling_auto

PATH = Path(__file__).parents[2] / "rope_viz" / "models" / "auto_classes.json"
USUAL = "AutoModelForCausalLM"
# In the order in which they are preferred: a wrapper's own class before that of its language model alone.
MAPPINGS = {
    "AutoModelForImageTextToText": "MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES",
    "AutoModelForSeq2SeqLM": "MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES",
    USUAL: "MODEL_FOR_CAUSAL_LM_MAPPING_NAMES",
    "AutoModelForMultimodalLM": "MODEL_FOR_MULTIMODAL_LM_MAPPING_NAMES",
    "AutoModel": "MODEL_MAPPING_NAMES",
}


def find_auto_classes(kinds: list[str]) -> dict[str, list[str]]:
    """Return {Auto class: model types}, without the usual class."""
    found: dict[str, list[str]] = {name: [] for name in MAPPINGS}
    for kind in kinds:
        name = next((name for name, mapping in MAPPINGS.items() if kind in getattr(modeling_auto, mapping)), USUAL)
        found[name].append(kind)
    return {name: sorted(kinds) for name, kinds in found.items() if name != USUAL}


if __name__ == "__main__":
    kinds = [kind for kind, facts in read_records().items() if not facts.get("remote_code")]
    lines = [f"{json.dumps(name)}: {json.dumps(types)}" for name, types in find_auto_classes(kinds).items()]
    PATH.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
