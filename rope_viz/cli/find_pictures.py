"""What the commands that draw pictures share: the picture of a name, its choices and variants, and its rendering."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rope_viz.cli.output import STDOUT, named
from rope_viz.cli.spec import read_config, refuse_diffusion
from rope_viz.embedding.spec import short_repr
from rope_viz.models.read_upload import single_axis_upload
from rope_viz.models.spec_url import Subject
from rope_viz.models.variant import MOST, Variant, read_variant
from rope_viz.pages import registry

if TYPE_CHECKING:
    from rope_viz.figures.files.style import Style
    from rope_viz.picture.page import Picture
    from rope_viz.picture.picture_request import Choice, PictureRequest


def describe_formats(output: str, given: str | None, forms: Sequence[str]) -> str:
    """Return the sentence for a format that is unknown or missing."""
    names = [name for name in forms if name != "packed"]
    if given is not None:
        return f"--format must be one of {', '.join(names)}, got {short_repr(given)}"
    if output == STDOUT:
        return f"standard output needs a format: --format {names[0]}"
    return f"{output}: the file must end in {', '.join(f'.{name}' for name in names)}"


def read_variants(written: Sequence[str], current: Variant) -> dict[int, Variant]:
    """Return the curves of --variant by number. Raise `ValueError` with one sentence for an unusable one."""
    if len(written) > MOST:
        raise ValueError(f"one figure shows at most {MOST} variants, got {len(written)}")
    return {number: read_variant(text, current, open_variant) for number, text in enumerate(written, 1)}


def open_variant(name: str) -> Variant:
    """Return the embedding of a config file. Raise `ValueError` with one sentence."""
    from rope_viz.picture.picture_request import share_variant

    config = read_config(name)
    with named(name):
        refuse_diffusion(config)
        own = single_axis_upload(config)
    return share_variant(Subject(own.specs[own.layer], layer=own.layer, own=own))


def render(picture: Picture, request: PictureRequest, form: str, look: Style) -> bytes:
    """Render a picture to a file's bytes. Raise `ValueError` with the renderer's sentence, freed of Markdown."""
    from rope_viz.picture import export
    from rope_viz.picture.wire_format import strip_markup

    try:
        return export.render(picture, request, form, look)
    except ValueError as error:
        raise ValueError(strip_markup(str(error))) from None


def find_picture(name: str) -> Picture:
    """Return the picture of this name. Raise `ValueError` with a sentence if there is none."""

    page, _, picture = name.partition("/")
    try:
        return registry.picture(page, picture)
    except KeyError as error:
        raise ValueError(f"{str(error.args[0]).rstrip('.')}: rope-viz figure --list prints all names") from None


def find_choices(name: str) -> list[Choice[Any]]:
    """Return the choices that a picture depends on, [] for an unknown name."""

    try:
        picture = find_picture(name)
    except ValueError:
        return []
    return [choice for choice in registry.page(picture.page).choices if choice.key in picture.depends]
