"""Read a trainer's own options, and put into a case what a trainer computes from them.

Sizes and base that the options leave out come from the config. Scaling that they leave out has the trainer's default.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from rope_viz.embedding.scaling import mscale
from rope_viz.embedding.spec import MAX_HEAD_DIM, FloatArray, require_number, short_repr
from rope_viz.runtimes.releases import format_version
from rope_viz.runtimes.rule_engine import ORIGINAL, Case, Rule, Test
from rope_viz.runtimes.texts import TEXTS

Evidence: TypeAlias = Literal["executed", "read"]


@dataclass(frozen=True)
class Trainer:
    """One trainer as its code was executed or read.

    `label` is the name that its makers write. `releases` are the newest first. `rules` are in the order in which the
    trainer applies them, or a function returns those of a release. `source` names the files. `read` has the keys of
    rules whose code was read and not executed. `permutes` is True where its own converter puts q and k into the order
    of transformers' pairs; that code was read.
    """

    label: str
    releases: tuple[str, ...]
    rules: tuple[Rule, ...] | Callable[[str], tuple[Rule, ...]]
    source: str
    read: frozenset[str] = frozenset()
    permutes: bool = False

    @property
    def name(self) -> str:
        """The name on the command line: lower case, no brackets, dashes for spaces."""
        return self.label.lower().replace("(", "").replace(")", "").replace(" ", "-")

    def evidence(self, rules: tuple[Rule, ...]) -> Evidence:
        """Return whether everything that these rules say was executed."""
        return "read" if any(one.key in self.read for one in rules) else "executed"


def short_version(release: str) -> str:
    """Return the first word of a release that contains a digit, without a comma."""
    words = (word.rstrip(",") for word in release.split())
    return next((word for word in words if any(letter.isdigit() for letter in word)), format_version(release))


def argument(case: Case, *names: str, default: Any = None) -> Any:
    """Return the first of these options that is given, also where its value is None."""
    return next((case.arguments[name] for name in names if name in case.arguments), default)


def number(case: Case, *names: str, default: float, positive: bool = True) -> float:
    """Return an option as a float; None counts as missing. Raise `ValueError` where it is no finite number."""
    value = argument(case, *names)
    if value is None:
        return default
    require_number(value, names[0], above=0.0 if positive else None)
    return float(value)


def mapping(case: Case, name: str) -> Mapping[str, Any] | None:
    """Return an option that holds keys and values, None where it is missing. Raise `ValueError` for other values."""
    value = argument(case, name)
    if value is not None and not isinstance(value, Mapping):
        raise ValueError(TEXTS("options.object", name=name, got=short_repr(value)))
    return value


def is_given(*names: str) -> Test:
    """Return a test whether one of these options is given."""
    return lambda case: any(name in case.arguments for name in names)


def has_arguments(case: Case) -> bool:
    """Return whether any option is given."""
    return bool(case.arguments)


def set_rotary(case: Case, dims: float) -> Case:
    """Return the case with this many rotated dimensions. Raise `ValueError` where no head has so many."""
    require_number(dims, TEXTS("options.rotated"), least=2, most=MAX_HEAD_DIM, integer=True)
    return case if dims == case.rotary_dim else case.replace(head_dim=int(dims), share=1.0, plain_share=1.0)


def set_base(case: Case, *names: str) -> Case:
    """Return the case with the base that an option names, else with that of the config."""
    base = number(case, *names, default=case.base)
    require_number(base, names[0], above=1.0, most=1e30)
    return case.replace(base=base)


def set_rope(case: Case, kind: str, **knobs: Any) -> Case:
    """Return the case with this type of scaling; None leaves a key out. The rotated dimensions stay the same."""
    rope = {key: value for key, value in knobs.items() if value is not None}
    dims = case.rotary_dim if kind == "default" else 0
    changed = case.replace(rope={"rope_type": kind, **rope})
    return set_rotary(changed, dims) if dims else changed


def set_linear(case: Case, factor: float) -> Case:
    """Return the case with all frequencies divided by the factor; a factor of 1 scales nothing."""
    return set_rope(case, "default") if factor == 1.0 else set_rope(case, "linear", factor=factor)


def set_llama3(case: Case, factor: float = 8.0, low: float = 1.0, high: float = 4.0, original: float = 8192) -> Case:
    """Return the case with Llama 3 scaling; `original` is in tokens."""
    bands = {"low_freq_factor": low, "high_freq_factor": high}
    return set_rope(case, "llama3", factor=factor, **bands, **{ORIGINAL: original})


def set_yarn(
    case: Case, factor: float, original: float, fast: float = 32.0, slow: float = 1.0, *, truncate: bool = True
) -> Case:
    """Return the case with YaRN as released and its default factor on cos and sin; `original` is in tokens."""
    ramp = {"beta_fast": fast, "beta_slow": slow, "truncate": truncate, ORIGINAL: original}
    return set_rope(case, "yarn", factor=factor, **ramp).replace(attention=mscale(factor))


def plain_inv_freq(case: Case) -> FloatArray:
    """Return the unscaled frequencies of a case, radians per position, shape (pairs,)."""
    dims = case.rotary_dim
    values: FloatArray = case.base ** (-np.arange(0, dims, 2) / dims)
    return values


def set_inv_freq(case: Case, compute: Callable[[FloatArray], FloatArray]) -> Case:
    """Return the case whose frequencies are computed from the unscaled ones by a formula of the trainer's own."""
    plain = plain_inv_freq(case)
    return set_rope(case, "default").replace(divisors=tuple((plain / compute(plain)).tolist()))


def describe_arguments(case: Case) -> dict[str, Any]:
    """Return {name: value} of the scaling of a case in the keys of Hugging Face, with the defaults of transformers."""
    rope = case.rope
    return {
        "factor": float(rope.get("factor") or 1.0),
        ORIGINAL: case.original,
        "beta_fast": float(rope.get("beta_fast") or 32.0),
        "beta_slow": float(rope.get("beta_slow") or 1.0),
        "truncate": rope.get("truncate", True) is not False,
    }
