"""What each runtime does with the attention temperature by position, as its files were read.

Executed were the classes of transformers 5.23.0 (tests/goldens/make_query_temperature.py), and the formulas of Llama 4
and Ministral 3 in vLLM 0.33.0 and SGLang 0.5.23 (make_query_temperature_servers.py). When a server uses them was read.
"""

from __future__ import annotations

from rope_viz.models.model_config import ModelConfig
from rope_viz.models.query_temperature import find_temperature
from rope_viz.runtimes.releases import RELEASES


def describe_temperature(config: ModelConfig, runtime: str, version: str) -> str:
    """Return the kind of answer: "reference", "learned", "own_code", "paper", "not_known" or what the record has.

    "backend" where the code of transformers runs the model; "" for a model without attention temperature, or whose
    numbers cannot be read.
    """
    try:
        found = find_temperature(config)
        if found is None:
            return ""
    except ValueError:
        return ""
    if runtime == "paper":
        return "paper"
    if version != RELEASES[runtime].today[0]:
        return "not_known"
    if runtime == "transformers":
        own = "learned" if found.is_learned else "reference"
        return "own_code" if config.architecture.remote_code else own
    facts = config.architecture.runtime(runtime)
    return str(facts.get("temperature", "backend" if facts.get("file") == "transformers" else "not_known"))
