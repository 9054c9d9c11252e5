"""The real model of the page Heads: its measured heads, its sentence, and the choice of a head and a rotation."""

from __future__ import annotations

import functools
from collections.abc import Mapping

from rope_viz.embedding.spec import FloatArray, RopeSpec
from rope_viz.figures.heads import TEXTS
from rope_viz.figures.real_heads import JOB_NAMES
from rope_viz.pictures.choices import Menu, Pick
from rope_viz.pictures.picture_request import Now
from rope_viz.studies import heads as studies
from rope_viz.studies.heads import Turning
from rope_viz.studies.real_model import FOLDER, MeasuredHead, find_head, load_heads, load_results
from rope_viz.tiny_lm.capture_file import Captured, read_capture
from rope_viz.tiny_lm.checkpoints import scaled

FIRST_HEAD = "L16H0"
"""The head that the page opens with: the strongest previous-token head."""


@functools.cache
def list_heads() -> Mapping[str, str]:
    """Return {name: label} of all heads, layer by layer, as a click on the map counts them."""
    layers, count = load_heads().shape
    found = {}
    for layer in range(layers):
        for head in range(count):
            jobs = [JOB_NAMES[job] for job in load_heads().heads[layer, head].jobs]
            label = TEXTS("real.head", layer=layer, head=head)
            found[f"L{layer}H{head}"] = f"{label}: {', '.join(jobs).lower()}" if jobs else label
    return found


CHOSEN = Menu(
    key="heads.real",
    label=TEXTS("choices.real"),
    entries=lambda now: list_heads(),
    usual=lambda now: FIRST_HEAD,
    check=lambda text: text in list_heads(),
    width=340,
)
THRESHOLDS = {job.split()[0]: least for job, least in load_results("heads")["about"]["thresholds"].items()}
"""{first word of a job: mean attention on the right tokens above which a head has it}."""
ROTATIONS = {name: label for name, label in TEXTS.group("rotations").items() if name != "trained"}
ROTATION = Pick(key="heads.rotation", label=TEXTS("choices.rotation"), options=ROTATIONS, usual=lambda now: "linear 2")


def chosen_head(now: Now) -> MeasuredHead:
    """Return the chosen head."""
    return load_heads().heads[find_head(now[CHOSEN])]


@functools.cache
def load_sentence() -> tuple[Captured, tuple[str, ...]]:
    """Return q and k of all heads on one sentence, before rotation, and the sentence's tokens."""
    return read_capture(FOLDER / "smollm2_sentence.safetensors"), tuple(load_results("sentence")["rows"]["tokens"])


def real_spec() -> RopeSpec:
    """Return the embedding of the real model."""
    return load_sentence()[0].spec(0)


def scaled_spec(rotation: str) -> RopeSpec:
    """Return the real model's embedding under a rotation such as "yarn 2"."""
    method, factor = rotation.split()
    return scaled(real_spec(), method, int(factor) * real_spec().context)


def attend(head: MeasuredHead, spec: RopeSpec) -> FloatArray:
    """Return the attention of a head on the sentence, (tokens, tokens), rotated by `spec`."""
    layer = load_sentence()[0].layer(head.layer).as_heads(spec)
    rows = studies.sample_queries(layer.tokens, layer.tokens)
    return studies.weights(layer, head.head, rows, Turning.from_spec(spec))
