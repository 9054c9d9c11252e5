"""Sentences about rotations with several axes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rope_viz.embedding.axes_spec import MIXED
from rope_viz.figures.axes import LOOKS, lanes_of
from rope_viz.figures.prompt import RUNTIMES, following, signed, written
from rope_viz.figures.words.common import counted
from rope_viz.models.user_config import join_words
from rope_viz.multi_axis.image_layouts import ALL_HEADS, Role, Scene
from rope_viz.multi_axis.prompt_syntax import Laid, Wanted, first_difference
from rope_viz.studies.axis_extrapolation import METHODS, ExtendedAxis, Peak, count_unturned_pairs, find_peaks
from rope_viz.studies.distance_2d import block_means
from rope_viz.texts.numbers import format_number, format_tokens

PLURAL = {"time": "frames", "row": "rows", "column": "columns"}
FAINT = 0.75  # from this score at (reach, reach) on, the arms of the cross are barely visible
BLIND = 0.9995  # scores from here on are shown as 1.000


def sight(shown: Sequence[Scene], reach: int) -> str:
    """Give the score of each scene at `reach` rows, columns and frames."""
    text = " ".join(seen_by(scene, reach) for scene in shown)
    if any(scene.seen.second is not None for scene in shown):
        text += (
            " Where a table is **no rotation**, a score also depends on where the query stands: the map is the mean "
            "over queries and equal keys of every direction."
        )
    return text


def seen_by(scene: Scene, reach: int) -> str:
    """Describe one scene: its scores, and the shape they make."""
    order: tuple[Role, ...] = ("column", "row", "time")
    scores = {role: score_at(scene, role, reach) for role in order if role in scene.roles}
    verb = "the score is still" if scores.get("column", 0.0) >= BLIND else "the score is"
    numbers = [
        f"at {reach:,} {PLURAL[role]} {verb + ' ' if not k else ''}{value_of(scores[role], k)}"
        for k, role in enumerate(scores)
    ]
    return f"{scene.name}, {scene.part}: {', '.join(numbers)}{shape(scene, reach)}."


def value_of(score: float, place: int) -> str:
    """Format a score with three digits, the first of a list in bold."""
    text = f"{score:.3f}".replace("-", "−")
    return f"**{text}**" if not place else text


def score_at(scene: Scene, role: str, away: int) -> float:
    """Return the mean cosine of all pairs at a displacement along one axis."""
    seen = scene.seen
    weights = seen.weights if seen.second is None else np.concatenate([seen.weights, seen.second])
    return float(np.cos(weights[:, seen.index(role)] * away).mean())


def shape(scene: Scene, reach: int) -> str:
    """Describe the shape of the map, by which axes the pairs depend on."""
    owner = scene.seen.owner
    blind = [role for role in ("column", "row") if never_below(scene, role, reach)]
    if len(blind) == 2:
        return ": it sees neither rows nor columns"
    if blind:
        other = "rows" if blind[0] == "column" else "columns"
        return f": bands, blind to {PLURAL[blind[0]]}, and {other} are all it has"
    if np.any(owner == MIXED):
        if "position" in scene.spec.axes:
            return ": a row away is as far as the image is wide"
        return ": a spot" if scene.part.endswith(ALL_HEADS) else ": its directions are not those of the grid"
    both = float(block_means(scene.seen, [reach, reach + 1], [reach, reach + 1], axes=("row", "column"))[0, 0])
    cross = "a spot with a faint cross" if both >= FAINT else "a cross"
    return f", at both {both:.3f}: {cross}".replace("-", "−")


def never_below(scene: Scene, role: str, reach: int) -> bool:
    """Return True if the score along one axis is shown as 1.000 over the whole reach."""
    if role not in scene.roles:
        return False
    away = np.linspace(0.0, reach, 65)
    weights = scene.seen.along(role)
    return bool(np.cos(np.multiply.outer(away, weights)).mean(axis=1).min() >= BLIND)


def speeds(shown: Sequence[Scene]) -> str:
    """Say how many pairs of each axis finish a turn within the image or video."""
    return " ".join(turning(scene) for scene in shown)


def turning(scene: Scene) -> str:
    """Describe one scene: how many pairs of each axis turn within its side, and the shortest wavelength."""
    parts = []
    for lane in lanes_of(scene):
        here = lane.pairs(scene)
        shortest = float(here.length.min())
        inside = int(np.sum(here.length <= lane.side))
        span = f"{format_tokens(round(shortest)) if shortest >= 100 else f'{shortest:.3g}'}"
        if lane.side > 1:
            parts.append(f"**{inside} of {len(here.length)}** within {lane.side:,} {lane.unit} (the fastest in {span})")
        else:
            parts.append(f"{counted(len(here.length), 'pair')} of {lane.look.word}, the fastest in {span}")
    return f"{scene.name}, {scene.part}: pairs that finish a turn are {join_words(parts)}."


def prompt(layout: Laid, runtime: str, other: Laid | None = None, other_runtime: str = "") -> str:
    """Say what images cost, where text continues, and where a second runtime differs."""
    name = RUNTIMES.get(runtime, runtime)
    parts = []
    for k, piece in enumerate(layout.wanted):
        if piece.what != "text" and layout.tokens(k):
            cost = format_number(layout.cost(k))
            parts.append(f"{named(piece)} is {layout.tokens(k):,} tokens and takes **{cost} positions**.")
    parts += overlaps(layout, name)
    delta = layout.positions.rope_delta
    if delta is not None:
        count = layout.positions.tokens
        parts.append(
            f"The next token, {count:,}, is at {format_number(following(layout))}: rope_delta **{signed(delta)}**."
        )
    if other is not None:
        parts.append(compared(layout, other, name, RUNTIMES.get(other_runtime, other_runtime)))
    return " ".join(parts)


def named(piece: Wanted) -> str:
    """Name a piece of the prompt at the start of a sentence."""
    if piece.what == "sound":
        return f"A sound of {piece.seconds:g} s"
    size = f"{piece.width} × {piece.height} pixels"
    return f"An image of {size}" if piece.what == "image" else f"A film of {size} and {piece.seconds:g} s"


def overlaps(layout: Laid, name: str) -> list[str]:
    """Report text that starts before the preceding video's positions end, and the jump after the prompt."""
    out = []
    values = layout.positions.values
    for k, piece in enumerate(layout.wanted):
        part = values[layout.ends[k] : layout.ends[k + 1]]
        begins = layout.starts[k + 1]
        if piece.what == "video" and len(part) and begins <= part.max():
            out.append(
                f"In {name} what follows the film begins at {format_number(begins)}, though its time goes on to "
                f"{format_number(float(part.max()))}: **they overlap**."
            )
    jump = following(layout) - layout.starts[-1]
    if jump and out:
        out.append(f"The first token written after the prompt therefore jumps by {format_number(jump)}.")
    return out


def compared(layout: Laid, other: Laid, name: str, other_name: str) -> str:
    """Say where two runtimes first differ."""
    at = first_difference(layout, other)
    if at is None:
        return f"{other_name} gives every token the same positions."
    here, there = (written(each.positions.values, at) for each in (layout, other))
    return f"{other_name} differs first at **token {at:,}**: {there} instead of {here}."


def standing(pairs: Sequence[int], runtime: str) -> str:
    """Name the pairs that no section claims in a runtime, which therefore have zero frequency."""
    if not pairs:
        return ""
    which = join_words([str(pair) for pair in pairs]) if len(pairs) <= 6 else f"{len(pairs)} pairs"
    pair = "pair " if len(pairs) == 1 else "pairs " if len(pairs) <= 6 else ""
    return f"In {RUNTIMES.get(runtime, runtime)} {pair}{which} stand still: no section claims them."


def beyond(done: ExtendedAxis, unit: str) -> str:
    """Say how many pairs finish a turn in training, and where beyond it the score recurs."""
    count = len(done.pair)
    slow = count_unturned_pairs(done)
    word = LOOKS[done.role].word
    text = f"**{slow} of {count}** pairs of {word} do not finish a turn in the {done.trained:,} {unit} of training."
    own = [peak for peak in find_peaks(done) if peak.at > done.trained]
    if done.method == "none":
        return f"{text} {home(own, done)}"
    plain = [peak for peak in find_peaks(done, plain=True) if peak.at > done.trained]
    text += f" {METHODS[done.method]} changes {len(done.changed)} of them"
    if done.method == "riflex" and len(done.changed):
        place = int(np.flatnonzero(np.abs(done.extended - done.plain) > 0.0)[0])
        turn = 2.0 * np.pi / float(done.extended[place])
        text += f": pair {int(done.changed[0])} now takes {turn:.3g} {unit} for a turn, more than all {done.target:,}"
    if abs(done.factor - 1.0) > 1e-9:
        text += f", and multiplies cos and sin by {done.factor:.4g}"
    first = plain[0] if plain else None
    if first is not None:
        there = float(done.score(np.array([float(first.at)]))[0])
        text += (
            f". As trained the score comes home at {first.at:,} with {first.score:.2f}; now it is **{there:.2f}** there"
        )
        if own and own[0].at == first.at:
            return f"{text}.".replace("-", "−")
    return f"{text}. {home(own, done)}".replace("-", "−")


def home(found: Sequence[Peak], done: ExtendedAxis) -> str:
    """Name the highest recurrence of the score beyond the trained side."""
    if not found:
        return "Behind them the score does not come home."
    best = found[0]
    return f"Behind them the score comes home farthest at **{best.at:,}**: {best.score:.2f}."


def patch(scene: Scene, place: dict[Role, int]) -> str:
    """Say where the patch of the clocks is, and how many pairs each axis moves."""
    where = ", ".join(f"{LOOKS[role].word} {place[role]:,}" for role in ("time", "row", "column") if role in place)
    hands = [f"{lane.look.word}: {counted(len(lane.pairs(scene).pair), 'pair')}" for lane in lanes_of(scene)]
    return f"The pairs of the patch at {where}, hands coloured by what moves them ({', '.join(hands)})."
