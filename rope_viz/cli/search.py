"""The command `search`: find divisors of a model's pairs for a longer context, by trials."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from rope_viz.cli.evaluate import INTERRUPTED, say
from rope_viz.cli.find_pictures import describe_formats
from rope_viz.cli.flags import add_command
from rope_viz.cli.output import write_output
from rope_viz.cli.spec import read_model_folder, tokens
from rope_viz.embedding.spec import short_repr
from rope_viz.evaluation.score_divisors import GgufScorer, Scorer, TinyScorer, TransformersScorer
from rope_viz.evaluation.search_divisors import GOALS, STARTS, TINY, SearchPlan, search
from rope_viz.evaluation.search_results import SearchResult, read_search
from rope_viz.figures.files import FORMS
from rope_viz.models.identity.local_models import MODELS
from rope_viz.models.model_config import ModelConfig
from rope_viz.tiny_lm import checkpoints
from rope_viz.tiny_lm.passkey import WORDINGS

REAL = "smollm2"


def add(commands: Any) -> None:
    """Add the command and its flags."""
    add_command(
        commands,
        "search",
        run,
        TINY=TINY,
        REAL=REAL,
        tokens=tokens,
        GOALS=GOALS,
        STARTS=",".join(STARTS),
        read_attention=read_attention,
        WORDINGS=WORDINGS,
    )


def run(parsed: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    if parsed.picture and Path(parsed.picture).suffix.lower().removeprefix(".") not in FORMS:
        raise ValueError(describe_formats(parsed.picture, None, [*FORMS]))
    output = Path(parsed.output).resolve()
    if not output.parent.is_dir():
        raise ValueError(f"{output.parent} is not a folder: name another output")
    scorer = make_scorer(parsed)
    plan = SearchPlan(
        model=parsed.model if parsed.model in (TINY, REAL) else Path(parsed.model).resolve().name,
        length=parsed.to,
        by=parsed.by,
        knots=parsed.knots,
        starts=tuple(parsed.starts.split(",")),
        attention_factor=parsed.attention_factor,
        texts=parsed.texts,
        held_out=parsed.held_out,
        seed=parsed.seed,
    )
    storage = parsed.storage or f"sqlite:///{output}.db"
    try:
        found = search(plan, scorer, storage, trials=parsed.trials, say=say)
    except KeyboardInterrupt:
        say("interrupted: the same command continues the search")
        return INTERRUPTED
    write_output(parsed.output, (json.dumps(found, indent=1) + "\n").encode())
    if parsed.picture:
        write_picture(parsed.picture, read_search(json.dumps(found).encode()))
    print_result(found)
    return 0


def make_scorer(parsed: argparse.Namespace) -> Scorer:
    """Return the models of the search. Raises `ValueError` if there are none."""
    if parsed.model == TINY:
        return TinyScorer([checkpoints.load_tiny_lm(name) for name in checkpoints.SEEDS])
    if parsed.model == REAL:
        model = MODELS[REAL]
        if not model.is_there:
            raise ValueError(f"{model.title} is not installed: rope-viz get-model {REAL}")
        return GgufScorer(model.weights)
    read = ModelConfig.read(read_model_folder(parsed.model))
    if len(read.start_specs) > 1:
        raise ValueError(f"{parsed.model} has several tables of frequencies, and the search sets one")
    return TransformersScorer(parsed.model, read.start_specs[read.main_layer], words=parsed.words, device=parsed.device)


def print_result(found: dict[str, Any]) -> None:
    """Print the held-out scores, the gain, the divisors and what to write into config.json."""
    plan, best = found["plan"], found["best"]
    print(f"{found['trials']:,} trials at {plan['length']:,} tokens; {plan['held_out']:,} held-out texts of each model")
    print("divisors         right answers       loss of the answers")
    for each in [best, *found["starts"]]:
        scores = each["held_out"]
        name = "found" if each is best else f"start {each['start']}"
        share = f"{scores['right']:.2f} ({scores['low']:.2f}-{scores['high']:.2f})"
        print(f"{name.ljust(16)} {share.ljust(19)} {scores['loss']:.3f}")
    gain = found["gain"]
    print(f"gain over {gain['over']}: {gain['right']:+.2f} ({gain['low']:+.2f} to {gain['high']:+.2f}) right answers")
    print("divisors: " + ", ".join(f"{value:.3g}" for value in best["divisors"]))
    print(json.dumps(found["config"], indent=2))


def write_picture(path: str, found: SearchResult) -> None:
    """Write what the found divisors and YaRN's leave of each frequency."""
    from rope_viz.figures import files
    from rope_viz.pages.recall import figures as recall

    files.save(recall.compare_with_yarn(found.spec), path, title=recall.make_title(found))


def read_attention(text: str) -> float | None:
    """Read an attention factor, or None for `search`."""
    if text == "search":
        return None
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.0 < value < 100.0:
        raise argparse.ArgumentTypeError(f"an attention factor must be a number above 0, or search: {short_repr(text)}")
    return value
