"""Read a user's config, with one position axis or several, into the form that all pages use."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from rope_viz.embedding.axis_sections import analyse_spec
from rope_viz.embedding.spec import RopeSpec
from rope_viz.models import TEXTS
from rope_viz.models.config_reader import is_pipeline_part, name_config, read_model_type
from rope_viz.models.formats.json_source import describe_source, names_unread_keys, source_file
from rope_viz.models.layer_patterns import describe_rotated_shares
from rope_viz.models.long_names import cut_long_names, describe_long_names
from rope_viz.models.model_config import ModelConfig
from rope_viz.models.several_axes.model_axes import from_model, is_encoder
from rope_viz.models.user_config import (
    Upload,
    check_shape,
    complete_config,
    empty_long_values,
    note_emptied,
    parse_config,
)
from rope_viz.texts.texts import join_list

SIDE = 64  # patches along the side of an image: 1024 pixels of FLUX


def read_upload(text: str | bytes, current: RopeSpec | None = None, name: str = "") -> Upload:
    """Return the upload of a config.json, or of a bare rope_scaling with missing sizes from `current`, called `name`.

    Raises `ValueError` with one sentence that says what is wrong.
    """
    notes: list[str] = []
    config = parse_config(text, notes, skip_lists=True)
    return make_upload(config, notes, current=current or RopeSpec(), name=name)


def make_upload(
    config: Mapping[str, Any],
    notes: Sequence[str] = (),
    *,
    current: RopeSpec | None = None,
    name: str = "",
) -> Upload:
    """Return the upload of a parsed config. Every config from outside takes these steps in this order.

    `current` and `name` are as in `read_upload`; without `current`, missing sizes stay missing. Raises
    `ValueError` with one sentence that says what is wrong.
    """
    config, assumed = normalise_config(config, current=current, name=name)
    return make_upload_of(ModelConfig.read(config), config, (*notes, *assumed))


def make_upload_of(model: ModelConfig, config: Mapping[str, Any], notes: Sequence[str] = ()) -> Upload:
    """Return the upload of a config within the limits that was read as `model`. Raises `ValueError`."""
    read = multi_axis_upload if has_several_axes(config, model) else single_axis_upload
    return read(config, notes, model)


def normalise_config(
    config: Mapping[str, Any], *, current: RopeSpec | None = None, name: str = ""
) -> tuple[dict[str, Any], list[str]]:
    """Return a parsed config within the limits of `make_upload`, and notes on what was changed in it.

    Nothing is computed from it here. Raises `ValueError` if it is too deep or has too many keys.
    """
    config, emptied = empty_long_values(config)
    check_shape(config)
    notes = note_emptied(emptied)

    cut, long_names = cut_long_names(config)
    config = dict(cut)
    notes += [sentence for _, sentence in describe_long_names(long_names)]

    # A part of a diffusion pipeline has axes, and no sizes of a language model to fill in.
    if current is None or is_pipeline_part(config):
        return config, notes
    config, filled = complete_config(config, current)
    if filled:
        origin = name or TEXTS("read_upload.settings")
        notes.append(TEXTS("read_upload.filled", keys=join_list(filled), origin=origin))
    return config, notes


def single_axis_upload(
    config: Mapping[str, Any], notes: Sequence[str] = (), model: ModelConfig | None = None
) -> Upload:
    """Return the upload of a language model's config. Raises `ValueError` if RoPE cannot be computed from it.

    `model` is the same config if the caller has read it.
    """
    read = model or ModelConfig.read(config)
    # That a GGUF file was read is no warning; what was not read of it is one.
    news = describe_source(config) if source_file(config) and not names_unread_keys(config) else ""
    # The check lists how much of a head rotates: that is so in every Gemma 4.
    told = (note for note in read.notes if note not in (news, describe_rotated_shares(read.fields)))
    return Upload(name_config(config), config, read.start_specs, (*notes, *told), read)


def has_several_axes(config: Mapping[str, Any], model: ModelConfig | None = None) -> bool:
    """Return True for a diffusion transformer or an encoder, whose positions lie on several axes.

    `model` is the same config if the caller has read it.
    """
    return is_pipeline_part(config) or is_encoder_only(config, model)


def is_encoder_only(config: Mapping[str, Any], model: ModelConfig | None = None) -> bool:
    """Return True for an image or video encoder with several axes and without a language model."""
    if not (model or ModelConfig.read(config)).problems:
        return False
    try:
        parts = from_model(config) if is_encoder(read_model_type(config), config) else {}
        return any(len(part.axes) > 1 for part in parts.values())
    except (ValueError, ArithmeticError, RecursionError):
        return False


def multi_axis_upload(config: Mapping[str, Any], notes: Sequence[str] = (), model: ModelConfig | None = None) -> Upload:
    """Return the upload of a diffusion transformer or an encoder: the frequencies of each axis for pages of one axis.

    If no base describes the frequencies, those pages show plain RoPE with as many pairs, and a note explains it. Raises
    `ValueError` for an unknown class. Time comes last, because an image has one frame.
    """
    part = next(iter(from_model(config).values()))
    found = analyse_spec(part)
    name = re.sub(r"\W", "", config["_class_name"])[:48] if is_pipeline_part(config) else name_config(config)
    ladders = {} if found is None else {axis: each for axis, each in found.ladders.items() if each.first == 1.0}
    key = f"read_upload.{'diffusion' if is_pipeline_part(config) else 'encoder'}_{'ladders' if ladders else 'others'}"
    note = TEXTS(key, name=name, axes=len(part.axes), side=SIDE, pairs=part.pairs)
    specs = {
        axis: RopeSpec(head_dim=2 * each.pairs, base=each.base, context=SIDE, pairing="interleaved")
        for axis, each in sorted(ladders.items(), key=lambda item: item[0] == "t")
    }
    plain = RopeSpec(head_dim=2 * part.pairs, context=SIDE, pairing="interleaved")
    return Upload(name, config, specs or {"": plain}, (*notes, note), model)
