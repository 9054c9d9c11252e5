"""The steps of the page Learn: each is an ordinary address of the app with one picture, one sentence and one task.

They follow the argument of RoFormer (https://arxiv.org/abs/2104.09864) and YaRN (https://arxiv.org/abs/2309.00071).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rope_viz.embedding import spectrum
from rope_viz.embedding.spec import RopeSpec
from rope_viz.figures.words import attention as words
from rope_viz.pictures import attention, frequencies, learn, registry, rotation, scaling
from rope_viz.pictures.page import Picture
from rope_viz.pictures.picture_request import Choice, Now
from rope_viz.texts.numbers import format_number, format_tokens


@dataclass(frozen=True)
class Step:
    """One step. `query` is its initial address; `says` returns its sentence with the current numbers.

    `knobs` (of the model) and `choices` (of the page) are the controls of its task. `done` compares the start of the
    step with the current state.
    """

    title: str
    picture: Picture
    query: Mapping[str, str]
    says: Callable[[Now], str]
    task: str
    done: Callable[[Now, Now], bool]
    praise: Callable[[Now], str]
    knobs: tuple[str, ...] = ()
    choices: tuple[Choice[Any], ...] = ()

    @property
    def page(self) -> str:
        """Return the page that the picture belongs to."""
        return self.picture.page

    @property
    def start(self) -> Now:
        """Return the initial state of the step."""
        return registry.read_request(registry.page(self.page), self.query)


FOUR = {"model": "custom", "dim": "8", "base": "100", "trained": "128", "target": "128"}
LLAMA = {"model": "llama-2-7b"}
LONG = LLAMA | {"target": "16384"}
RATIO = {"scaling.show": "ratio"}


def unfinished(spec: RopeSpec) -> int:
    """Return the number of pairs that never completed a turn in training."""
    return int(np.count_nonzero(spec.context * spec.plain_inv_freq < spectrum.TAU))


def beyond(spec: RopeSpec, position: int) -> int:
    """Return the number of pairs whose angle at this position is beyond any angle seen in training."""
    seen = spec.context * spec.plain_inv_freq
    return int(np.count_nonzero((seen < spectrum.TAU) & (position * spec.inv_freq(spec.target) > seen)))


def why_position(now: Now) -> str:
    """Explain that equal words are equal without position."""
    sentence, causal = now[attention.SENTENCE], now[attention.CAUSAL]
    return (
        "A *logit* measures how much one word attends to another; softmax turns logits into weights. "
        + words.describe_repetition(now.spec, sentence, offset=0, causal=causal)
    )


def one_pair(now: Now) -> str:
    """Explain one pair as an arrow and its two numbers."""
    m = now[learn.M]
    return (
        "RoPE reads two numbers of a vector as a point and rotates it by an angle proportional to its position. "
        f"At m = {m} the angle is {m} × 1 radian, so (1, 0) becomes **({math.cos(m):.2f}, {math.sin(m):.2f})**. "
        "Its length stays 1."
    )


def four_pairs(now: Now) -> str:
    """Explain the frequencies of a small head."""
    *first, last = (format_number(value) for value in now.spec.inv_freq(now.spec.target))
    return (
        f"A head of {now.spec.head_dim} numbers has {now.spec.pairs} pairs. Each turns at its own frequency θᵢ: "
        f"{', '.join(first)} and {last} radians per token. "
        "High frequencies separate neighbours; low frequencies separate far from near."
    )


def distance(now: Now) -> int:
    """Return m − n."""
    m, n = places(now)
    return m - n


def places(now: Now) -> tuple[int, int]:
    """Return the positions of query and key."""
    at: Choice[Any] = rotation.AT
    m, n = now[at]
    return int(m), int(n)


def only_distance(now: Now) -> str:
    """Explain that the score depends only on the distance."""
    return (
        "The query q turns with its position m, and the key k with its position n. Their score depends on the angle "
        f"between them, (m − n)θᵢ. So it depends only on the distance, here m − n = **{distance(now):,}**."
    )


def moved_sentence(now: Now) -> str:
    """Explain what changes when the sentence moves."""
    sentence, offset, causal = now[attention.SENTENCE], now[attention.OFFSET], now[attention.CAUSAL]
    return (
        "The *sinusoidal encoding* of the first transformers adds position to the vector instead. "
        + words.describe_move(now.spec, sentence, offset=offset, causal=causal)
    )


def real_head(now: Now) -> str:
    """Explain the first and last hand of a real head."""
    first, last = (float(spectrum.TAU / now.spec.inv_freq(now.spec.target)[at]) for at in (0, -1))
    return (
        f"A head of Llama 2 7B has {now.spec.head_dim} numbers: **{now.spec.pairs} hands**. The first completes a turn "
        f"every {format_number(first)} tokens, the last every {format_tokens(round(last))}."
    )


def pinned(now: Now) -> str:
    """Return a sentence with the pinned pair's frequency."""
    return (
        f"Pair {now.pin} turns by {format_number(now.spec.inv_freq(now.spec.target)[now.pin or 0])} radians per token."
    )


def frequency_series(now: Now) -> str:
    """Explain the geometric series of frequencies."""
    step, last = now.spec.base ** (2 / now.spec.rotary_dim), float(spectrum.TAU / now.spec.plain_inv_freq[-1])
    return (
        f"θᵢ = b⁻²ⁱᐟᵈ: from pair to pair the frequency falls by the same factor, here {format_number(step)}. The "
        "*base* b sets the lowest frequency. A *wavelength* is the number of tokens of one turn. With b = "
        f"{format_number(now.spec.base)} the longest is **{format_tokens(round(last))}**."
    )


def left_over(now: Now) -> str:
    """Explain that some pairs never complete a turn in training."""
    return (
        f"The {now.spec.length_name} length is {format_tokens(now.spec.context)} tokens. In it "
        f"**{unfinished(now.spec)} of {now.spec.pairs} pairs** never "
        "complete a turn: the model has seen only part of their circle."
    )


def too_far(now: Now) -> str:
    """Explain angles that training never showed."""
    at = max(places(now))
    return (
        f"The {now.spec.length_name} length is {format_tokens(now.spec.context)}. At position {at:,} "
        f"**{beyond(now.spec, at)} of {now.spec.pairs} pairs** have angles never seen in training: their hands have "
        "left the shaded arc. This is why a long context breaks."
    )


def linear(now: Now) -> str:
    """Explain linear interpolation: neighbours blur."""
    spec = now.spec
    return (
        f"Linear interpolation divides every frequency by s = {format_number(spec.scaling.factor_for(spec))}. "
        "No hand leaves its arc any more, but neighbours become hard to tell apart. On the first pair they were "
        f"{format_number(spec.plain_inv_freq[0])} radian apart and are now "
        f"**{format_number(spec.inv_freq(spec.target)[0])}**."
    )


def ntk(now: Now) -> str:
    """Explain NTK-aware scaling: only low frequencies change much."""
    spec = now.spec
    return (
        "NTK-aware scaling raises the base instead. The first pair keeps its frequency, the last is divided by "
        f"**{format_number(spec.plain_inv_freq[-1] / spec.inv_freq(spec.target)[-1])}**, the others by an amount in "
        "between. No training is needed, but some middle pairs reach angles slightly beyond training."
    )


def yarn(now: Now) -> str:
    """Explain YaRN: bands, ramp and attention factor."""
    spec = now.spec
    found = spectrum.bands(spec, length=spec.target)
    kept, blended, divided = (found.count(kind) for kind in range(3))
    logits = format_number(spec.attention_factor(spec.target) ** 2)
    return (
        f"YaRN treats each *band* of pairs differently: **{kept}** pairs keep their frequency, **{blended}** are "
        f"blended along a *ramp*, **{divided}** are divided. More tokens flatten the softmax, so the "
        f"*attention factor* (λ) makes every logit **{logits}** times as large. "
        "**Next** shows whether the model still finds what it read."
    )


def scaled(start: Now, now: Now) -> bool:
    """True if the scaling method was changed."""
    return now.spec.scaling != start.spec.scaling


STEPS: tuple[Step, ...] = (
    Step(
        "Why position at all?",
        attention.maps,
        LLAMA | {"attention.offset": "0"},
        why_position,
        "Choose **Scores**. Compare the two rows of the repeated word, in the first map and in the third.",
        lambda start, now: now[attention.SHOW] != start[attention.SHOW],
        lambda now: (
            "In the first map both rows are the same: without position the model cannot tell the two words apart."
        ),
        choices=(attention.SHOW,),
    ),
    Step(
        "One pair, turned",
        learn.arrow,
        {},
        one_pair,
        "Move m to **3**: just short of half a turn.",
        lambda start, now: now[learn.M] == 3,
        lambda now: "cos 3 = −0.99 and sin 3 = 0.14. The direction encodes the position; the length does not change.",
        choices=(learn.M,),
    ),
    Step(
        "Every pair at its own frequency",
        rotation.turning,
        FOUR,
        four_pairs,
        "Change the position: press **→** on the dials, or move the slider.",
        lambda start, now: places(now) != places(start),
        lambda now: (
            f"At position {places(now)[0]:,} the four angles differ from those at every other position in training."
        ),
    ),
    Step(
        "Only the distance stays",
        rotation.turning,
        FOUR | {"rotation.show": "score", "rotation.at": "100,84"},
        only_distance,
        "Move **both together** and watch the score: it does not change.",
        lambda start, now: places(now) != places(start) and distance(now) == distance(start),
        lambda now: "The hands have turned, the score has not changed. This is what *relative* position means.",
    ),
    Step(
        "Move the whole sentence",
        attention.maps,
        LLAMA | {"attention.offset": "0"},
        moved_sentence,
        "Move the sentence away from position 0.",
        lambda start, now: now[attention.OFFSET] > 0,
        lambda now: "RoPE's scores stay the same; the sinusoidal ones change.",
        choices=(attention.OFFSET,),
    ),
    Step(
        "A real head",
        rotation.turning,
        LLAMA,
        real_head,
        "Click a dial: the pair is then highlighted on every page.",
        lambda start, now: now.pin is not None,
        pinned,
    ),
    Step(
        "How the base sets the frequencies",
        frequencies.wavelengths,
        LLAMA,
        frequency_series,
        "Drag the **base** and watch the line tilt; its first point never moves.",
        lambda start, now: now.spec.base != start.spec.base,
        lambda now: "Pair 0 always turns by 1 radian per token. The base changes all the others, the last one most.",
        knobs=("base",),
    ),
    Step(
        "Some pairs never complete a turn",
        frequencies.wavelengths,
        LLAMA,
        left_over,
        "Drag the **length**: how many pairs never complete a turn at 64k?",
        lambda start, now: now.spec.context != start.spec.context,
        lambda now: (
            f"With length {format_tokens(now.spec.context)}, {unfinished(now.spec)} pairs never complete a turn."
        ),
        knobs=("context",),
    ),
    Step(
        "Beyond the trained length",
        rotation.turning,
        LONG | {"rotation.at": "12000,0"},
        too_far,
        "Move the position back below 4,096 and watch the hands.",
        lambda start, now: max(places(now)) <= now.spec.context,
        lambda now: "Below the trained length no hand leaves the angles seen in training.",
    ),
    Step(
        "Divide every frequency: linear",
        scaling.comparison,
        LONG | {"method": "linear"} | RATIO,
        linear,
        "Drag the **factor**: the whole line sinks.",
        scaled,
        lambda now: f"All {now.spec.pairs} pairs keep the same share of their frequency, even the highest.",
        knobs=("factor",),
    ),
    Step(
        "Change the base: NTK",
        scaling.comparison,
        LONG | {"method": "ntk"} | RATIO,
        ntk,
        "Drag the **factor** and watch which end moves.",
        scaled,
        lambda now: "Only the low frequencies fall. Neighbours stay as distinct as before.",
        knobs=("factor",),
    ),
    Step(
        "YaRN: keep the high frequencies, divide the low",
        scaling.comparison,
        LONG | {"method": "yarn"} | RATIO,
        yarn,
        "Drag the **factor**: the low frequencies fall, the high ones stay, and the numbers above change.",
        scaled,
        lambda now: "Qwen documents YaRN, and DeepSeek and gpt-oss ship it. Open the page and choose your own model.",
        knobs=("factor",),
    ),
)
