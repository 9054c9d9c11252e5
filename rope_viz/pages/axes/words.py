"""Sentences of the Axes page, with the current numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from rope_viz.embedding.axes_spec import MIXED
from rope_viz.embedding.axis_sections import block_means
from rope_viz.multi_axis.image_layouts import ALL_HEADS, COUNTED, Role, Scene
from rope_viz.multi_axis.prompt_syntax import PromptLayout, first_difference
from rope_viz.pages.axes.extrapolation import POINTS
from rope_viz.pages.axes.figures import LOOKS, TEXTS, Lane, lanes_of, title
from rope_viz.pages.axes.prompt import RUNTIMES, format_position, format_signed, next_position
from rope_viz.studies.axis_extrapolation import LEAST_PEAK, ExtendedAxis, Peak, count_unturned_pairs, find_peaks
from rope_viz.texts import Sentence, join
from rope_viz.texts.texts import join_list

FAINT = 0.75  # from this score at (reach, reach) on, the arms of the cross are barely visible
FLAT = 0.9995  # scores from here on are shown as 1.000
NAMED_PAIRS = 6


def describe_map(shown: Sequence[Scene], reach: int) -> Sentence:
    """Give the score of each scene at `reach` rows, columns and frames."""
    no_rotation = any(scene.role_spec.second is not None for scene in shown)
    return join(
        *(describe_scores(scene, reach) for scene in shown),
        *((TEXTS("map.no_rotation"), TEXTS("map.mean_of_queries")) if no_rotation else ()),
    )


def describe_scores(scene: Scene, reach: int) -> Sentence:
    """Describe one scene: its scores at `reach`, and the pattern of its map."""
    order: tuple[Role, ...] = ("column", "row", "time")
    scores = [
        _with_minus(TEXTS(f"map.{role}", reach=reach, **{role: score_at(scene, role, reach)}))
        for role in order
        if role in scene.roles
    ]
    first = TEXTS("map.scores", scene=title(scene), scores=join_list(scores)) if scores else Sentence()
    return join(first, describe_pattern(scene, reach))


def score_at(scene: Scene, role: str, distance: int) -> float:
    """Return the mean cosine of all pairs at a displacement along one axis."""
    seen = scene.role_spec
    weights = seen.weights if seen.second is None else np.concatenate([seen.weights, seen.second])
    return float(np.cos(weights[:, seen.index(role)] * distance).mean())


def describe_pattern(scene: Scene, reach: int) -> Sentence:
    """Describe the pattern of the map, which depends on the axes of the pairs."""
    sees_columns, sees_rows = (not is_flat(scene, role, reach) for role in ("column", "row"))
    if not sees_rows or not sees_columns:
        return TEXTS("map.rows_only" if sees_rows else "map.columns_only" if sees_columns else "map.flat")
    if np.any(scene.role_spec.owner == MIXED):
        if COUNTED in scene.spec.axes:
            return TEXTS("map.counted", width=round(scene.steps["row"][COUNTED]))
        return TEXTS("map.mixed" if scene.part.endswith(ALL_HEADS) else "map.head")
    both = float(block_means(scene.role_spec, [reach, reach + 1], [reach, reach + 1], axes=("row", "column"))[0, 0])
    return _with_minus(TEXTS("map.faint_cross" if both >= FAINT else "map.cross", reach=reach, both=both))


def is_flat(scene: Scene, role: str, reach: int) -> bool:
    """Return True if the score along one axis is shown as 1.000 over the whole reach."""
    if role not in scene.roles:
        return False
    distances = np.linspace(0.0, reach, 65)
    weights = scene.role_spec.along(role)
    return bool(np.cos(np.multiply.outer(distances, weights)).mean(axis=1).min() >= FLAT)


def describe_wavelengths(shown: Sequence[Scene]) -> Sentence:
    """Count the pairs of each axis that complete a turn within the image or video."""
    sentences = []
    for scene in shown:
        lanes = lanes_of(scene)
        inside = [describe_lane(scene, lane) for lane in lanes if lane.side > 1]
        entry = "wavelengths.scene" if inside else "wavelengths.single"
        sentences.append(TEXTS(entry, scene=title(scene), lanes=join_list(inside)))
        sentences += [describe_lane(scene, lane) for lane in lanes if lane.side <= 1]
    return join(*sentences)


def describe_lane(scene: Scene, lane: Lane) -> Sentence:
    """Give the shortest wavelength of one axis, and how many pairs turn within its side if that is longer than 1."""
    lengths = lane.pairs(scene).length
    shortest, pairs = float(lengths.min()), len(lengths)
    if lane.side <= 1:
        return TEXTS("wavelengths.other", count=pairs, axis=lane.look.word, shortest=shortest)
    inside = int(np.sum(lengths <= lane.side))
    return TEXTS("wavelengths.inside", inside=inside, pairs=pairs, side=lane.side, unit=lane.unit, shortest=shortest)


def describe_prompt(
    layout: PromptLayout, runtime: str, other: PromptLayout | None = None, other_runtime: str = ""
) -> Sentence:
    """Give the positions that images take, the next token's position, and where a second runtime differs."""
    name = RUNTIMES.get(runtime, runtime)
    parts = [describe_piece(layout, k) for k in range(len(layout.pieces))]
    parts += describe_overlaps(layout, name)
    delta = layout.positions.rope_delta
    if delta is not None:
        numbers = {"count": layout.positions.tokens, "at": next_position(layout), "delta": delta}
        parts.append(TEXTS("prompt.next", **numbers, signed=format_signed(delta)))
    if other is not None:
        parts.append(compare_layouts(layout, other, name, RUNTIMES.get(other_runtime, other_runtime)))
    return join(*parts)


def describe_piece(layout: PromptLayout, place: int) -> Sentence:
    """Give the tokens and positions of an image, video or audio; empty for text."""
    piece, tokens = layout.pieces[place], layout.tokens(place)
    if piece.what == "text" or not tokens:
        return Sentence()
    size = {"width": piece.width, "height": piece.height, "seconds": piece.seconds}
    return TEXTS(f"prompt.{piece.what}", **size, tokens=tokens, cost=layout.cost(place))


def describe_overlaps(layout: PromptLayout, runtime: str) -> list[Sentence]:
    """Report pieces that start before the preceding video's positions end, and the jump after the prompt."""
    found = []
    for k, piece in enumerate(layout.pieces):
        part = layout.positions.values[layout.ends[k] : layout.ends[k + 1]]
        start = layout.starts[k + 1]
        if piece.what == "video" and len(part) and start <= part.max():
            found.append(TEXTS("prompt.overlap", runtime=runtime, start=start, end=float(part.max())))
    jump = next_position(layout) - layout.starts[-1]
    return [*found, TEXTS("prompt.jump", jump=jump)] if jump and found else found


def compare_layouts(layout: PromptLayout, other: PromptLayout, name: str, other_name: str) -> Sentence:
    """Say where the positions of two runtimes first differ."""
    at = first_difference(layout, other)
    if at is None:
        return TEXTS("prompt.same", other=other_name)
    here, there = (format_position(each.positions.values, at) for each in (layout, other))
    if not here or not there:
        return TEXTS(
            "prompt.more_tokens",
            token=at,
            longer=name if here else other_name,
            shorter=other_name if here else name,
        )
    return TEXTS("prompt.differs", other=other_name, token=at, here=here, there=there)


def describe_zero_pairs(pairs: Sequence[int], runtime: str) -> Sentence:
    """Name the pairs without a section in a runtime, which therefore have zero frequency; empty if there are none."""
    if not pairs:
        return Sentence()
    how_many = "one" if len(pairs) == 1 else "some" if len(pairs) <= NAMED_PAIRS else "many"
    return TEXTS(
        f"prompt.{how_many}_zero",
        runtime=RUNTIMES.get(runtime, runtime),
        zero=len(pairs),
        list=join_list(list(map(str, pairs))),
    )


def describe_extension(done: ExtendedAxis) -> Sentence:
    """Count the pairs without a full turn in training, and give the peak of the score beyond it."""
    unit, method, trained = TEXTS(f"units.{done.role}"), TEXTS(f"methods.{done.method}"), done.trained
    axis, pairs = LOOKS[done.role].word, len(done.pair)
    first = TEXTS(
        "further.unturned", slow=count_unturned_pairs(done), pairs=pairs, axis=axis, trained=trained, unit=unit
    )
    found = find_peaks(done)
    rings = TEXTS("further.rings") if found and done.target < POINTS else ""
    request = next((peak for peak in found if peak.at > trained), None)
    if done.method == "none":
        return join(first, describe_peak(request, unit), rings)
    parts = [first, TEXTS("further.changed", method=method, changed=len(done.changed), pairs=pairs)]
    if done.method == "riflex" and len(done.changed):
        place = int(np.flatnonzero(np.abs(done.extended - done.plain) > 0.0)[0])
        turn = 2.0 * np.pi / float(done.extended[place])
        parts.append(TEXTS("further.riflex", pair=int(done.changed[0]), turn=turn, unit=unit, target=done.target))
    if abs(done.factor - 1.0) > 1e-9:
        parts.append(TEXTS("further.factor", factor=done.factor))
    before = next((peak for peak in find_peaks(done, plain=True) if peak.at > trained), None)
    if before is not None:
        after = float(done.score(np.array([float(before.at)]))[0])
        parts.append(TEXTS("further.lowered", before=before.score, first=before.at, method=method, after=after))
        if request is not None:
            return join(*parts, describe_peak(request, unit, method) if request.at != before.at else "", rings)
    return join(*parts, describe_peak(request, unit), rings)


def describe_peak(peak: Peak | None, unit: str, method: str = "") -> Sentence:
    """Give the highest peak of the score beyond the trained side; name the method if another peak precedes this one."""
    if peak is None:
        return TEXTS("further.no_peak", unit=unit, least=LEAST_PEAK)
    entry = "further.peak_with" if method else "further.peak"
    return TEXTS(entry, unit=unit, method=method, at=peak.at, score=peak.score)


def describe_patch(scene: Scene, place: dict[Role, int]) -> Sentence:
    """Give the place of the patch of the dials, and the number of pairs that each axis turns."""
    order: tuple[Role, ...] = ("time", "row", "column")
    where = [TEXTS(f"patch.{role}", **{role: place[role]}) for role in order if role in place]
    axes = [TEXTS("patch.axis", axis=lane.look.word, count=len(lane.pairs(scene).pair)) for lane in lanes_of(scene)]
    return join(TEXTS("patch.place", place=join_list(where)), TEXTS("patch.colours", axes=join_list(axes)))


def _with_minus(sentence: Sentence) -> Sentence:
    """Write negative numbers with a minus sign instead of a hyphen."""
    return Sentence(re.sub(r"-(?=\d)", "−", sentence), sentence.values, sentence.entries)
