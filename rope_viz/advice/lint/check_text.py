"""The check of a config.json as text: what its keys mean, and what is odd about the text itself."""

from __future__ import annotations

import inspect
from dataclasses import dataclass

from rope_viz.advice.lint import RULES, Finding, Severity, check, rule_name, sort_by_severity, source_of
from rope_viz.advice.lint.lint_context import inside
from rope_viz.embedding.spec import short_repr
from rope_viz.models.formats.json_source import Raw, read_raw

# Findings that no rule over a `View` makes: {name: what is looked for, and the source}.
OTHER_FINDINGS = {
    "unreadable": "The file is not a config: it is missing, truncated, or contains no JSON object.\n\n"
    "Source: rope_viz.models.formats.json_source, which reads text as json.loads of Python does.",
    "not-computable": "RoPE cannot be computed from a key: it has null or text in place of a number, "
    "or a number that is too large.\n\n"
    "Source: rope_viz.models, which follows the classes of transformers 5.23.0.",
    "no-rope": "The model has no rotary embedding, so there is nothing to check.\n\n"
    "Source: the modeling files of transformers 5.23.0; rope_viz.models.no_rope_types names the types.",
    "repeated-keys": "A key occurs twice in one object, and only the last one counts.\n\n"
    "Source: the json module of Python, by which transformers reads a config.",
    "trained-otherwise": "The trainer that --trainer names computes something else from this config, or refuses it.\n\n"
    "Source: rope_viz.runtimes.trainers, compared with executed trainers (tests/goldens/training.json).",
    "override": "An override of --hf-overrides or --rope-scaling loses the base, changes nothing, or is refused.\n\n"
    "Source: rope_viz.models.overrides, compared with the merging code of the loaders (tests/goldens/overrides.json).",
    "draft": "The draft model of --draft does not fit: vocabulary, length, or RoPE of a head such as EAGLE.\n\n"
    "Source: config/speculative.py of vLLM 0.33.0, read; NVIDIA-NeMo/Automodel#2399, sgl-project/sglang#6783 and "
    "vllm-project/vllm-ascend#6612.",
    "byte-order-mark": "The file starts with a byte order mark, for which transformers raises.\n\n"
    "Source: transformers 5.23.0 reads UTF-8 and calls json.loads, which raises JSONDecodeError; executed.",
}


@dataclass(frozen=True)
class RuleText:
    """A rule as text: what it looks for, in one sentence, and the whole text with its source."""

    what: str
    text: str


def rules() -> dict[str, RuleText]:
    """Return {name: rule} of everything that the check can find."""
    texts = {rule_name(rule): inspect.getdoc(rule) or "" for rule in RULES} | OTHER_FINDINGS
    return {name: RuleText(" ".join(text.split("\n\n")[0].split()), text) for name, text in texts.items()}


def explain_rule(name: str) -> str:
    """Return what a rule looks for, and its source. Raises `ValueError` that lists the rules."""
    known = rules()
    if name not in known:
        raise ValueError(f"unknown rule {short_repr(name)}; rules are {', '.join(sorted(known))}")
    return f"{name}\n\n{known[name].text}"


def check_text(data: str | bytes) -> tuple[Raw, list[Finding]]:
    """Return what the text holds and what the check finds in it, the worst first. Raises `ValueError` for no config."""
    raw = read_raw(data)
    found = check(raw.config)
    for place in raw.repeated:
        last = short_repr(inside(raw.config, place))
        text = f"{short_repr(place[-1])} occurs more than once. The last one counts, {last}, as in transformers."
        found.append(text_finding("repeated-keys", "warning", ".".join(place), text))
    if raw.marked:
        text = (
            "The file starts with a byte order mark: transformers raises JSONDecodeError. Save it as UTF-8 without BOM."
        )
        found.append(text_finding("byte-order-mark", "error", "", text))
    return raw, sort_by_severity(found)


def text_finding(rule: str, severity: Severity, key: str, message: str) -> Finding:
    """Return a finding about the text itself, with its source."""
    return Finding(rule, severity, key, message, source=source_of(OTHER_FINDINGS[rule]))
