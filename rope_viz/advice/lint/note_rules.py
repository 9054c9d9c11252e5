"""Rules of the check about what a config.json does not say itself: learned frequencies, and switches of Megatron-LM."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rope_viz.advice.lint.lint_context import Finding, View
from rope_viz.models.formats.megatron_config import FORMAT
from rope_viz.models.formats.source_note import FILE
from rope_viz.models.model_config import LEARNED

SWITCH, FACTOR = "use_rope_scaling", "rope_scaling_factor"


def learned_frequencies(view: View) -> Iterator[Finding]:
    """The frequencies are in the weights.

    Source: transformers 5.23.0, modeling_mistral_large4.py, executed (tests/goldens/learned_frequencies.json).
    """
    if view.fields.architecture.rope.learned:
        yield Finding("", "note", "", f"{LEARNED} `rope-viz verify CONFIG --from model.safetensors` reads them.")


def megatron_scaling(view: View) -> Iterator[Finding]:
    """use_rope_scaling, Megatron-LM's switch of Llama 3 scaling, whose numbers are constants in its code.

    Source: megatron-core, rotary_pos_embedding.py, executed (tests/goldens/training.json); swiss-ai/Megatron-LM#80.
    """
    source = view.model.mapping.get(FILE)
    if isinstance(source, Mapping) and source.get("format") == FORMAT:
        for site in view.sites_of("llama3"):
            text = (
                f"{SWITCH} is Llama 3 scaling with factor {site.number('factor'):g} and megatron-core's constants: "
                f"original length 8192, low_freq_factor 1, high_freq_factor 4. --{FACTOR.replace('_', '-')} does not "
                "reach the model of Megatron-LM: there the factor is 8."
            )
            yield Finding("", "note", SWITCH, text)
    elif view.text.get(SWITCH) is True and all(spec.scaling.name == "none" for spec in view.specs.values()):
        text = (
            f"{SWITCH} is a switch of Megatron-LM that no runtime reads in a config.json, so nothing is scaled. "
            "Llama 3 scaling is written as rope_scaling with rope_type llama3."
        )
        yield Finding("", "warning", view.place(SWITCH), text)
