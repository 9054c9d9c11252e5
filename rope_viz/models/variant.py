"""A pinned curve: another model, size or method, as one value of an address.

A value is a list such as `base=5e5` or `method=yarn,factor=4`, with the keys of an address. Without `model` it changes
the current embedding; with `model` it changes that model's own.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from rope_viz.embedding.spec import RopeSpec, short_repr
from rope_viz.models import TEXTS, spec_url
from rope_viz.models.catalog import catalog
from rope_viz.models.spec_url import CUSTOM, Subject
from rope_viz.storage.limits import VARIANT_CHARACTERS
from rope_viz.texts import Sentence, join
from rope_viz.texts.texts import join_items

MOST = 4
KEYS = {f"variant{number}": number for number in range(1, MOST + 1)}
"""{key of an address: the number of the pinned curve}."""
OTHER_NAMES = {
    "scaling": "method",
    "head_dim": "dim",
    "rotary_dim": "rot",
    "context": "trained",
    **{name: key for key, name in spec_url.LISTS.items()},
}
"""{name of a command-line flag: key of an address}; both are accepted."""


@dataclass(frozen=True)
class Variant:
    """An embedding without a config, and the name of the model that it started from."""

    subject: Subject
    name: str

    @property
    def start(self) -> Variant | None:
        """Return the model's own embedding, None if the model is not one of the catalog."""
        model = self.subject.model
        return None if model == CUSTOM else make_variant(Subject(spec_url.model_spec(model), model))


def make_variant(subject: Subject, name: str = "") -> Variant:
    """Return an embedding as a variant. An empty layer of a catalog model means its main one."""
    if subject.model == CUSTOM:
        return Variant(subject._replace(own=None), " ".join(re.sub("[,=<>&]", " ", name[:40]).split()))
    layer = subject.layer or spec_url.main_layer_of(subject.model)
    return Variant(subject._replace(layer=layer), subject.name)


def read_variant(text: str, current: Variant, open_file: Callable[[str], Variant] | None = None) -> Variant:
    """Read a variant. `open_file` opens a model that the catalog lacks, by the name of its file.

    Raise `ValueError` with a sentence if the text cannot be read.
    """
    params = split_pairs(text)
    model, layer = params.pop("model", ""), params.pop("layer", "")
    name = params.pop("name", "")
    if not model and (not layer or layer == current.subject.layer):
        start = current
    elif model == CUSTOM:
        start = make_variant(Subject(RopeSpec(), CUSTOM, layer), name)
    elif model and model not in catalog() and open_file is not None:
        start = open_file(model)
    else:
        start = _read_catalog_start(model or current.subject.model, layer)
    problems: list[Sentence] = []
    spec = spec_url.change_spec(start.subject.spec, params, problems)
    fields = {"method", "truncate", *spec_url.method_knobs(), *spec_url.LISTS} & set(params)
    for key in fields - {"method"}:
        if not hasattr(spec.scaling, spec_url.LISTS.get(key, key)):
            problems.append(TEXTS("variant.no_key", method=spec.scaling.name, key=key))
    if problems:
        # What the sentence on a link says, for a variant.
        causes = (TEXTS(one.entries[0].replace("link.", "variant."), **one.values) for one in problems)
        raise ValueError(join(*causes))
    return make_variant(start.subject._replace(spec=spec), start.name)


def write_variant(variant: Variant) -> str:
    """Return the text that `read_variant` reads next to any other embedding. Raise `ValueError` if there is none."""
    query, model = spec_url.write_query(variant.subject), variant.subject.model
    named = {"name": variant.name} if model == CUSTOM and variant.name else {}
    text = ",".join(f"{key}={value}" for key, value in ({"model": model} | query | named).items())
    if len(text) > VARIANT_CHARACTERS:
        raise ValueError(TEXTS("variant.long_list"))
    try:
        same = read_variant(text, variant) == variant
    except ValueError:
        same = False
    if not same:
        raise ValueError(TEXTS("variant.outside"))
    return text


def split_pairs(text: str) -> dict[str, str]:
    """Return `a=1,b=2` as a dict with the keys of an address; lists of numbers may contain commas.

    Raise `ValueError` with a sentence for anything else.
    """
    out: dict[str, str] = {}
    for piece in re.split(r",(?=[A-Za-z_-]+=)", text):
        written, equals, value = piece.partition("=")
        key = written.strip().replace("-", "_")
        key = OTHER_NAMES.get(key, key)
        if not equals:
            raise ValueError(TEXTS("variant.form", text=short_repr(text)))
        if key not in (*spec_url.KEYS, "name"):
            raise ValueError(TEXTS("variant.unknown_key", key=short_repr(written), keys=join_items(spec_url.KEYS)))
        if key in out:
            raise ValueError(TEXTS("variant.twice", text=short_repr(text), key=key))
        out[key] = value
    return out


def from_compared_models(names: str) -> dict[str, str]:
    """Return the models of an older address, `decay.models=a,b`, as variants. Those beyond the fourth are dropped."""
    found = [name for name in names.split(",") if name]
    return dict(zip(KEYS, (f"model={name}" for name in found), strict=False))


def _read_catalog_start(model: str, layer: str) -> Variant:
    if model not in catalog():
        raise ValueError(TEXTS("variant.no_model", model=short_repr(model)))
    subject, problems = spec_url.read_query({"model": model} | ({"layer": layer} if layer else {}))
    if problems:
        raise ValueError(join(*problems))
    return make_variant(subject)
