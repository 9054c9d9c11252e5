"""The real model of the page Heads: its measured heads, its sentence, and the choice of a head and a rotation."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping

import numpy as np

from rope_viz.embedding.spec import FloatArray, RopeSpec
from rope_viz.figures.heads import TEXTS
from rope_viz.figures.real_heads import JOB_NAMES
from rope_viz.pictures import stored_files
from rope_viz.pictures.choices import Menu, Pick
from rope_viz.pictures.picture_request import Now
from rope_viz.studies import heads as studies
from rope_viz.studies.heads import Turning
from rope_viz.studies.real_model import FOLDER, HeadMap, MeasuredHead, find_head, load_heads, load_results
from rope_viz.tiny_lm.capture_file import Captured, read_capture
from rope_viz.tiny_lm.checkpoints import scaled
from rope_viz.tiny_lm.measured_file import MeasuredModel, read_measured

FIRST_HEAD = "L16H0"
"""The head that the page opens with: the strongest previous-token head."""


NAME = re.compile(r"L\d{1,3}H\d{1,3}")

MEASURED = stored_files.json_file(
    read_measured,
    key="heads.measured",
    label=TEXTS("choices.measured"),
    help=TEXTS("choices.measured_help"),
    instead=TEXTS("choices.file_fallback"),
)


def own_model(now: Now) -> MeasuredModel | None:
    """Return the user's measured model, None without a file."""
    held = now[MEASURED]
    return None if held is None else held.value


def head_map(now: Now) -> HeadMap:
    """Return the heads of the user's model, or of the real model."""
    own = own_model(now)
    return load_heads() if own is None else own.heads


@functools.lru_cache(maxsize=4)
def list_heads(heads: HeadMap) -> Mapping[str, str]:
    """Return {name: label} of all heads, layer by layer, as a click on the map counts them."""
    found = {}
    for (layer, head), each in sorted(heads.heads.items()):
        label = TEXTS("real.head", layer=layer, head=head)
        jobs = [JOB_NAMES[job] for job in each.jobs]
        found[f"L{layer}H{head}"] = f"{label}: {', '.join(jobs).lower()}" if jobs else label
    return found


def example_head(now: Now) -> str:
    """Return the name of the strongest previous-token head, with which the page opens."""
    if own_model(now) is None:
        return FIRST_HEAD
    layer, head = np.unravel_index(np.argmax(head_map(now).scores("previous token")), head_map(now).shape)
    return f"L{layer}H{head}"


CHOSEN = Menu(
    key="heads.real",
    label=TEXTS("choices.real"),
    entries=lambda now: list_heads(head_map(now)),
    usual=example_head,
    check=lambda text: NAME.fullmatch(text) is not None,
    needs=(MEASURED,),
    width=340,
)
THRESHOLDS = {job.split()[0]: least for job, least in load_results("heads")["about"]["thresholds"].items()}
"""{first word of a job: mean attention on the right tokens above which a head has it}."""
ROTATIONS = {name: label for name, label in TEXTS.group("rotations").items() if name != "trained"}
ROTATION = Pick(
    key="heads.rotation",
    label=TEXTS("choices.rotation"),
    options=ROTATIONS,
    usual=lambda now: "linear 2",
    when=lambda now: own_model(now) is None,
    needs=(MEASURED,),
)


def chosen_head(now: Now) -> MeasuredHead:
    """Return the chosen head."""
    return head_map(now).heads[find_head(now[CHOSEN])]


def chosen_spec(now: Now) -> RopeSpec:
    """Return the embedding of the chosen head as trained."""
    own = own_model(now)
    return real_spec() if own is None else own.spec(chosen_head(now).layer)


def explain_no_sentence(now: Now) -> str:
    """Return why the sentence is not shown, "" if it is: its q and k are those of the real model."""
    return "" if own_model(now) is None else TEXTS("real.no_sentence")


@functools.cache
def load_sentence() -> tuple[Captured, tuple[str, ...]]:
    """Return q and k of all heads on one sentence, before rotation, and the sentence's tokens."""
    return read_capture(FOLDER / "smollm2_sentence.safetensors"), tuple(load_results("sentence")["rows"]["tokens"])


def real_spec() -> RopeSpec:
    """Return the embedding of the real model."""
    return load_sentence()[0].spec(0)


def scaled_spec(rotation: str, spec: RopeSpec | None = None) -> RopeSpec:
    """Return an embedding, the real model's by default, under a rotation such as "yarn 2"."""
    method, factor = rotation.split()
    spec = spec or real_spec()
    return scaled(spec, method, int(factor) * spec.context)


def attend(head: MeasuredHead, spec: RopeSpec) -> FloatArray:
    """Return the attention of a head on the sentence, (tokens, tokens), rotated by `spec`."""
    layer = load_sentence()[0].layer(head.layer).as_heads(spec)
    rows = studies.sample_queries(layer.tokens, layer.tokens)
    return studies.weights(layer, head.head, rows, Turning.from_spec(spec))
