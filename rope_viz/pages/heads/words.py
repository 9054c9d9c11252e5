"""Sentences of the Heads page: the bands that heads use, and the effect of scaling on one of them."""

from __future__ import annotations

import numpy as np

from rope_viz.embedding.spec import FloatArray
from rope_viz.embedding.spectrum import Bands
from rope_viz.pages.heads.figures import TEXTS
from rope_viz.studies.real_model import JOBS, HeadMap, MeasuredHead
from rope_viz.texts import Sentence, join
from rope_viz.texts.texts import join_list

BANDS = ("kept", "blended", "divided")
LEAST_SHARE = 0.05
"""Smallest share of a band that the sentence mentions."""


def describe_layer(
    name: str, layer: int, strength: FloatArray, positional: FloatArray | None, unrotated: int
) -> Sentence:
    """Give the strongest pairs of a layer, and the number of its heads that depend mostly on distance.

    `strength` is (heads, pairs); its last `unrotated` columns do not rotate. `positional` is (heads,), None if unknown.
    """
    share = strength.sum(axis=0) / max(float(strength.sum()), 1e-300)
    rotated = share[: len(share) - unrotated]
    top = np.argsort(rotated)[::-1][: max(1, len(rotated) // 10)]
    numbers = {"number": layer, "name": name, "rotated": len(rotated), "share": float(rotated[top].sum())}
    middle = int(np.median(np.sort(top)))
    rest = float(share[len(rotated) :].sum())
    return join(
        TEXTS("layer.strongest", count=len(top), middle=middle, **numbers),
        TEXTS("layer.middle", middle=middle) if len(top) > 1 else "",
        TEXTS("layer.unrotated", unrotated=rest) if unrotated else "",
        ""
        if positional is None
        else TEXTS("layer.positional", positional=int((positional > 0.5).sum()), heads=len(positional)),
    )


def describe_head(head: int, positional: float, bands: Bands, parts: FloatArray) -> Sentence:
    """Classify a head as positional or semantic, and give the shares of the bands in its logits.

    `positional` is the share of the logits' variance that distance explains. `parts` is what each pair adds to the
    logits of attended tokens, (pairs,); entries beyond those of `bands` do not rotate.
    """
    sums = [abs(float(parts[: len(bands.kind)][bands.kind == kind].sum())) for kind in range(len(BANDS))]
    shares = dict(zip(BANDS, (each / (sum(sums) or 1.0) for each in sums), strict=True))
    named = [TEXTS(f"one.{band}", **{band: share}) for band, share in shares.items() if share >= LEAST_SHARE]
    return join(
        TEXTS("one.positional" if positional > 0.5 else "one.semantic", head=head, positional=positional),
        TEXTS("one.bands", bands=join_list(named)) if named else "",
    )


def describe_change(within: int, before: float, after: float) -> Sentence:
    """Give the attention within so many tokens, as captured and with the chosen method."""
    return TEXTS("one.near", near=within, before=before, after=after)


def describe_jobs(heads: HeadMap, example: MeasuredHead, model: str = "") -> Sentence:
    """Count the heads of a real model with a job, and give what two methods do to an example, a previous-token head.

    `model` is the name of a user's model, "" for the one that was measured here.
    """
    jobs = JOBS[:3]
    numbers = {job.split()[0]: sum(job in head.jobs for head in heads.heads.values()) for job in jobs}
    named = sum(any(job in head.jobs for job in jobs) for head in heads.heads.values())
    changed = example.changed.get(JOBS[0], {})
    return join(
        TEXTS("real.own_jobs" if model else "real.jobs", named=named, heads=len(heads.heads), model=model, **numbers),
        TEXTS(
            "real.blurred",
            head=f"L{example.layer}H{example.head}",
            trained=example.scores[JOBS[0]],
            linear=changed["linear 2"],
            yarn=changed["yarn 2"],
        )
        if "linear 2" in changed
        else "",
        describe_measurement(heads, own=bool(model)),
    )


def describe_measurement(heads: HeadMap, *, own: bool = False) -> Sentence:
    """Say on how many tokens the heads were measured, and whether the text is the user's."""
    key = "real.own_measured" if own else "real.measured"
    return TEXTS(key, count=heads.about["sequences"], tokens=heads.about["tokens"])


def describe_uses(label: str, margin: FloatArray, first: int, context: int, scaling: str) -> Sentence:
    """Give what the pairs from `first` on add, which complete no turn within `context` tokens, and the largest pair.

    `scaling` is the label of what the line above the bars shows.
    """
    numbers = {"first": first, "last": len(margin) - 1, "slow": float(margin[first:].sum())}
    most = int(np.argmax(margin))
    return join(
        TEXTS("real.uses", label=label, total=float(margin.sum()), context=context, **numbers),
        TEXTS("real.most", pair=most, most=float(margin[most]), scaling=scaling),
    )


def describe_rotations(head: MeasuredHead, job: str) -> Sentence:
    """Give a job's score as trained and with two methods."""
    linear, yarn = (head.changed[job][name] for name in ("linear 2", "yarn 2"))
    return join(TEXTS("real.changed", trained=head.scores[job], linear=linear, yarn=yarn), TEXTS("real.alone"))
