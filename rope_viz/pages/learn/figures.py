"""The story of Learn: the numbers and texts of its eight scenes for the browser, which draws and moves them."""

from __future__ import annotations

import dataclasses
import functools
import html
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import rope_viz
from rope_viz.embedding import spectrum
from rope_viz.embedding.scaling import build_method
from rope_viz.embedding.spec import RopeSpec
from rope_viz.figures import clocks, hands, theme
from rope_viz.figures.hands import FEW, nearest_pair
from rope_viz.models.catalog import catalog, model_specs
from rope_viz.studies import attention
from rope_viz.studies.real_model import load_next_words, read_measurements
from rope_viz.texts import Texts, cache_by_language

TEXTS = Texts("learn")
SCENES = 8
LLAMA, SMOL = "llama-3.1-8b", "smollm2-135m"
SENTENCE = "Jane went out and then Jane came back"
MOVED = 100
"""Tokens by which scene 3 moves a sentence."""
SLOTS, POSITIONS = 12, 60
"""Positions on the ruler of scenes 2 and 3, and the last one of scene 4."""
BASES = (10_000, 100_000, 500_000, 1_000_000, 10_000_000)
SEEN_PAIRS = (6, 14, 22, 24, 28)
"""Pairs of SmolLM2 in scene 6; none that leaves the seen angles comes round to them before twice the length."""
FACTORS = (2, 4, 8)
METHODS = ("none", "linear", "ntk", "yarn")
MARGIN = 5.0
"""Logit of one token above all others in scene 7."""
PREVIOUS = {"trained": "as trained", "linear": "linear 2", "repaired": "yarn 2"}
"""Numbers of the last scene's mathematics, and the rotations they are measured with."""
RIGHT, QUIZ = (1, 1, 1, 2, 1, 1, 1, 2), ((1, 2), (0, 3), (1, 4), (2, 6), (0, 7))
"""The right answer of each prediction, from 0; and of each question, with the scene that shows it."""
LINKS = (
    f"/attention?model={LLAMA}",
    f"/rotation?model={LLAMA}",
    f"/rotation?model={LLAMA}&rotation.show=score&rotation.at=7,1",
    f"/rotation?model={LLAMA}&rotation.show=score&rotation.at=45,2",
    f"/frequencies?model={LLAMA}",
    f"/rotation?model={SMOL}&target=16384&rotation.at=14848,0",
    f"/scaling?model={SMOL}&target=16384&method=yarn&factor=2",
    "",
)
"""The address that shows each scene's picture in the app."""


def message(scene: int = 1) -> dict[str, Any]:
    """Return the story, opened at a scene from 1 to 8, as values that JSON can hold.

    `scenes` has for each the `numbers` of its picture and its `texts`.
    """
    shared = {key: str(clocks.APP(f"share.{key}")) for key in ("embed", "embed_host")} | hands.TEXTS.group("own")
    return {
        "title": str(TEXTS("heading")),
        "scene": scene,
        "scenes": [
            {"numbers": numbers, "texts": _texts(number, values)}
            for number, (numbers, values) in ((each, scene_numbers(each)) for each in range(1, SCENES + 1))
        ],
        "texts": TEXTS.group("story") | clocks.APP.group("video") | shared,
        "citation": read_citation(),
        "palette": _palette(),
        "cycle": [],
        "app": "",
    }


@functools.cache
def read_citation() -> str:
    """Return how to cite RoPE Viz, from CITATION.cff: in the installed package, or in the root of a checkout."""
    package = Path(rope_viz.__file__).parent
    inside = package / "CITATION.cff"
    text = (inside if inside.is_file() else package.parent / inside.name).read_text(encoding="utf-8")
    found = {key: value.strip('"') for key, value in re.findall(r"^(?:  - )?([\w-]+): (.+)$", text, re.MULTILINE)}
    return f"{found['name']} ({found['date-released'][:4]}). {found['title']} (version {found['version']})."


@cache_by_language()
def scene_numbers(number: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the numbers of a scene's picture, and the values that its texts name."""
    built = (_repeated, _one_hand, _two_hands, _four_clocks, _head, _beyond, _repairs, _proof)
    return built[number - 1]()


def _palette() -> dict[str, tuple[str, str]]:
    """Return each colour by its meaning, as (light, dark)."""
    known = {name: both for name, both in clocks.palette().items() if isinstance(both[0], str)}
    more = {"kept": theme.KEPT, "blended": theme.BLENDED, "divided": theme.DIVIDED, "panel": theme.PANEL}
    return (
        known | {name: (colour, theme.DARK[colour]) for name, colour in more.items()} | {"seen": ("#D3D8DE", "#3A424D")}
    )


def _texts(number: int, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the texts of a scene; the browser fills in those below "see" and the rest of "picture"."""
    start = f"scene{number}"

    def text(key: str) -> str:
        return str(TEXTS(f"{start}.{key}", **values))

    picture = TEXTS.group(f"{start}.picture")
    label = text("link")
    return {
        **{key: text(key) for key in ("title", "short", "lead", "question", "why", "task", "note")},
        "answers": [text(f"answer{each}") for each in (1, 2, 3)],
        "right": RIGHT[number - 1],
        "see": dict(TEXTS.group(f"{start}.see")),
        "picture": picture | {"source": text("picture.source")},
        "maths": format_math(text("maths.text")),
        "link": {"path": LINKS[number - 1], "label": label} if label else None,
    }


def plain_spec(model: str) -> RopeSpec:
    """Return the embedding of a model of the catalog as it was before any scaling."""
    return model_specs(model)[""].plain()


def _hand() -> dict[str, Any]:
    """Return the pair of scenes 2 and 3, with its rotation per position in radians."""
    rates = plain_spec(LLAMA).plain_inv_freq
    pair = nearest_pair(rates, FEW[1])
    return {"pair": pair, "rate": float(rates[pair]), "model": catalog()[LLAMA].name}


def _repeated() -> tuple[dict[str, Any], dict[str, Any]]:
    spec = plain_spec(LLAMA)
    maps = attention.attention_maps(spec, SENTENCE)
    word, first, second = attention.repeated_words(SENTENCE)[0]
    scores = {name: maps[name].scores.tolist() for name in ("none", "rope")}
    words = attention.split_words(SENTENCE)
    return {"words": words, "twice": [first, second], "repeated": word, **scores}, {"size": spec.head_dim}


def _one_hand() -> tuple[dict[str, Any], dict[str, Any]]:
    hand = _hand()
    step = math.degrees(hand["rate"])
    values = {"once": f"{step:.1f}°", "step": f"{step:.2f}°", "six": f"{6 * step:.1f}°", "plus": f"{step + 5:.1f}°"}
    return hand | {"word": "cat", "last": SLOTS - 1}, hand | values


def _two_hands() -> tuple[dict[str, Any], dict[str, Any]]:
    hand, spec = _hand(), plain_spec(LLAMA)
    before, after = (attention.attention_maps(spec, SENTENCE, offset=offset) for offset in (0, MOVED))
    word, _, second = attention.repeated_words(SENTENCE)[0]
    asks = attention.split_words(SENTENCE)[-1]
    score = [_signed(maps[name].scores[-1, second]) for name in ("sinusoidal", "rope") for maps in (before, after)]
    values = {"asks": asks, "repeated": word, "added": score[0], "added_moved": score[1], "rotated": score[3]}
    shown = {"words": ["cat", "slept"], "start": [1, 7]}
    return hand | shown | {"slots": SLOTS, "last": spec.context - SLOTS}, hand | values


def _four_clocks() -> tuple[dict[str, Any], dict[str, Any]]:
    rates = plain_spec(LLAMA).plain_inv_freq
    pairs = [nearest_pair(rates, degrees) for degrees in FEW]
    return {"pairs": pairs, "rates": rates[pairs].tolist(), "last": POSITIONS}, {"model": catalog()[LLAMA].name}


def _head() -> tuple[dict[str, Any], dict[str, Any]]:
    spec = plain_spec(LLAMA)
    numbers = {"pairs": spec.pairs, "base": spec.base, "trained": spec.context, "bases": BASES}
    return numbers, {"model": catalog()[LLAMA].name, "trained": f"{spec.context:,}"}


def write_words(position: int) -> str:
    """Return what the model writes next at a position under each method, with the loss there, as HTML."""
    loss = read_measurements()["loss"]
    rows = "".join(
        f"<dt>{TEXTS('scene6.written.row', method=TEXTS(f'scene6.written.{method}'), loss=f'{nats:.2f}')}</dt>"
        f"<dd>{html.escape(words)} …</dd>"
        for method, words in load_next_words()[position].items()
        for nats in [loss["methods"][method][position // loss["bin"]]]
    )
    title, remark = TEXTS("scene6.written.title", at=f"{position:,}"), TEXTS(f"scene6.written.at_{position}")
    return f"<p>{title}</p><dl>{rows}</dl><p>{remark}</p>"


def _beyond() -> tuple[dict[str, Any], dict[str, Any]]:
    spec, measured = plain_spec(SMOL), read_measurements()
    rates, loss = spec.plain_inv_freq, measured["loss"]
    numbers = {
        "pairs": SEEN_PAIRS,
        "rates": rates[list(SEEN_PAIRS)].tolist(),
        "trained": spec.context,
        "bin": loss["bin"],
        "loss": {name: loss["methods"][name] for name in ("none", "yarn")},
        "written": [{"at": position, "html": write_words(position)} for position in load_next_words()],
    }
    unfinished = int(np.count_nonzero(spec.context * rates < spectrum.TAU))
    values = {"name": catalog()[SMOL].name, "trained": f"{spec.context:,}", "unfinished": unfinished}
    values |= {key: measured[key] for key in ("source", "texts", "tokens", "factor")}
    return numbers, values | {"novel": "Northanger Abbey"}


def repaired(method: str, factor: int) -> RopeSpec:
    """Return the embedding of SmolLM2 extended by a method of `METHODS` to `factor` times its trained length."""
    spec = plain_spec(SMOL)
    return dataclasses.replace(spec, target=factor * spec.context, scaling=build_method(method, float(factor)))


def attention_weight(margin: float, tokens: int) -> float:
    """Return the softmax weight of one token whose logit is `margin` above that of all others."""
    return 1.0 / (1.0 + (tokens - 1) * math.exp(-margin))


def _repairs() -> tuple[dict[str, Any], dict[str, Any]]:
    spec = plain_spec(SMOL)
    curves: dict[str, Any] = {}
    attended: dict[str, Any] = {}
    for factor in FACTORS:
        extended = {method: repaired(method, factor) for method in METHODS}
        curves[str(factor)] = {
            method: {
                "ratio": spectrum.ratio(each, length=each.target).tolist(),
                "bands": spectrum.bands(each, length=each.target).kind.tolist(),
            }
            for method, each in extended.items()
        }
        gain = extended["yarn"].attention_factor(factor * spec.context)
        attended[str(factor)] = {
            "gain": gain,
            "lambda": gain**2,
            "plain": attention_weight(MARGIN, spec.context),
            "longer": attention_weight(MARGIN, factor * spec.context),
            "scaled": attention_weight(gain**2 * MARGIN, factor * spec.context),
        }
    turns = (spec.context * spec.plain_inv_freq / spectrum.TAU).tolist()
    numbers = {"methods": METHODS, "factors": FACTORS, "curves": curves, "attention": attended, "turns": turns}
    return numbers | {"trained": spec.context, "rates": spec.plain_inv_freq.tolist()}, {
        "name": catalog()[SMOL].name,
        "trained": f"{spec.context:,}",
    }


def _proof() -> tuple[dict[str, Any], dict[str, Any]]:
    measured = read_measurements()
    found = measured["passkey"]
    gain = repaired("yarn", FACTORS[0]).attention_factor(FACTORS[0] * measured["trained"])
    values = {
        "name": catalog()[SMOL].name,
        "source": measured["source"],
        "yarn": found["methods"]["yarn"][-1],
        "plain": found["methods"]["none"][-1],
        "of": found["questions"][-1],
        "longest": found["lengths"][-1],
        **{name: f"{measured['previous'][key]:.2f}" for name, key in PREVIOUS.items()},
        "gain": f"{gain:.3f}",
        "lambda": f"{gain**2:.3f}",
    }
    quiz = [
        {
            "question": str(TEXTS(f"quiz{number}.question", **values)),
            "answers": [str(TEXTS(f"quiz{number}.answer{each}", **values)) for each in (1, 2, 3)],
            "right": right,
            "scene": scene,
            "why": str(TEXTS(f"quiz{number}.why", **values)),
        }
        for number, (right, scene) in enumerate(QUIZ, start=1)
    ]
    methods = {method: found["methods"][method] for method in METHODS}
    return {key: found[key] for key in ("lengths", "questions")} | {"methods": methods, "quiz": quiz}, values


def _signed(value: float) -> str:
    return f"{value:.2f}".replace("-", "−")


def format_math(text: str) -> str:
    """Return HTML of paragraphs and formulas.

    A formula is a paragraph between "$ " and " $". `_x`, `^x`, `_(…)` and `^(…)` are lowered and raised, and
    `[[a, b; c, d]]` is a matrix.
    """
    out = []
    for part in re.split(r"\n\s*\n", text.strip()):
        line = html.escape(" ".join(part.split()), quote=False)
        if not line.startswith("$ "):
            out.append(f"<p>{_scripts(line)}</p>")
            continue
        pieces = re.split(r"\[\[(.*?)\]\]", line[2:].removesuffix(" $"))
        inside = (
            _matrix(each) if at % 2 else f"<span>{_scripts(each.strip())}</span>" for at, each in enumerate(pieces)
        )
        out.append(f'<div class="rv-formula">{"".join(each for each in inside if each != "<span></span>")}</div>')
    return "".join(out)


def _matrix(text: str) -> str:
    rows = [row.split(",") for row in text.split(";")]
    cells = "".join(f"<span>{_scripts(cell.strip())}</span>" for row in rows for cell in row)
    return f'<span class="rv-matrix" style="grid-template-columns: repeat({len(rows[0])}, auto)">{cells}</span>'


def _scripts(text: str) -> str:
    """Return HTML with the lowered and raised parts of a formula; the parts may be nested."""
    out, at = "", 0
    while at < len(text):
        sign = text[at]
        if sign not in "_^" or at + 1 == len(text):
            out, at = out + sign, at + 1
            continue
        name, stop = {"_": "sub", "^": "sup"}[sign], at + 2
        inside = text[at + 1]
        if inside == "(":
            depth = 1
            while depth:
                depth += {"(": 1, ")": -1}.get(text[stop], 0)
                stop += 1
            inside = _scripts(text[at + 2 : stop - 1])
        out, at = f"{out}<{name}>{inside}</{name}>", stop
    return out
