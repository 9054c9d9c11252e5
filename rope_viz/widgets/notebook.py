"""The widgets, by anywidget: in Jupyter, marimo, VS Code and Colab."""

from __future__ import annotations

import base64
import dataclasses
import gzip
from pathlib import Path
from typing import Any, ClassVar

import anywidget
import traitlets

from rope_viz.embedding.spec import RopeSpec, short_repr
from rope_viz.figures.files.html_json import plotly_js
from rope_viz.models.spec_url import Subject
from rope_viz.picture import export
from rope_viz.picture.page import Picture
from rope_viz.picture.picture_request import PictureRequest
from rope_viz.reports.draw import read_figure
from rope_viz.storage.write_file import write_file
from rope_viz.texts import Texts
from rope_viz.widgets.module import make_module
from rope_viz.widgets.saved_page import make_page, with_spec
from rope_viz.widgets.state import PICTURES, find_picture, list_fixed, list_sliders, read_spec, render, write_spec

TEXTS = Texts("widget")


class PictureWidget(anywidget.AnyWidget):
    """A picture of the app that moves in a notebook.

    `spec` is its embedding: it follows the sliders below the picture, and an assigned one moves them. `pin` is the
    pinned pair, or None.
    """

    name: ClassVar[str]
    _esm = traitlets.Unicode().tag(sync=True)
    spec = traitlets.Instance(RopeSpec).tag(
        sync=True,
        to_json=lambda spec, widget: write_spec(spec),
        from_json=lambda given, widget: widget._receive_spec(given),
    )
    pin = traitlets.Int(None, allow_none=True).tag(sync=True)
    _picture = traitlets.Unicode().tag(sync=True)
    _sliders: traitlets.List[Any] = traitlets.List().tag(sync=True)
    _fixed = traitlets.Dict().tag(sync=True)
    _needs_plotly = traitlets.Bool(False).tag(sync=True)
    _plotly = traitlets.Unicode().tag(sync=True)

    def __init__(self, spec: RopeSpec | None = None, *, request: PictureRequest | None = None, **choices: str) -> None:
        """Show a spec, by default a plain one. `choices` are the picture's, as in the app's links: `show="score"`.

        `request` takes the place of both. Raise `ValueError` for an unknown choice or value.
        """
        self._shown = find_picture(self.name)
        if request is None:
            request = PictureRequest(Subject(spec or RopeSpec()), given=read_choices(self._shown, choices))
        self._request, self._drawn = request, (request, render(self._shown, request))
        super().__init__(
            spec=request.spec,
            pin=request.pin,
            _esm=make_module(),
            _picture=self._drawn[1],
            _sliders=list_sliders(request.spec),
            _fixed=list_fixed(),
        )

    def save_html(self, path: str | Path) -> None:
        """Write the picture as it is now to an HTML file that moves without Python and without a network."""
        write_file(path, make_page(self._shown, self._current(self.spec)))

    def _current(self, spec: RopeSpec) -> PictureRequest:
        return dataclasses.replace(with_spec(self._request, spec), pin=self.pin)

    def _render(self, spec: RopeSpec) -> str:
        """Return the picture of a spec, once for the several calls that one change makes."""
        request = self._current(spec)
        if self._drawn[0] != request:
            self._drawn = request, render(self._shown, request)
        return self._drawn[1]

    @traitlets.validate("spec")
    def _check_spec(self, proposal: Any) -> RopeSpec:
        spec: RopeSpec = proposal["value"]
        self._render(spec)  # raises for a spec without a picture, before it is stored
        return spec

    def _receive_spec(self, given: Any) -> RopeSpec:
        """Return the spec that the browser sends; the present one if there is no picture of it, and send that back."""
        try:
            spec = read_spec(given)
            self._render(spec)
        except ValueError:
            self.send_state("spec")
            return self.spec
        return spec

    @traitlets.observe("spec", "pin")
    def _draw(self, change: Any) -> None:
        self._sliders = list_sliders(self.spec)
        self._picture = self._render(self.spec)

    @traitlets.observe("_needs_plotly")
    def _send_plotly(self, change: Any) -> None:
        self._plotly = base64.b64encode(gzip.compress(plotly_js().encode(), mtime=0)).decode()


class ClocksWidget(PictureWidget):
    """Every pair of the embedding as a clock that turns with the position."""

    name = "Clocks"


class HandsWidget(PictureWidget):
    """The query and the key of two words as the hands of a clock, above a ruler of positions."""

    name = "Hands"


class FrequenciesWidget(PictureWidget):
    """The wavelength of every pair, before and after scaling."""

    name = "Frequencies"


class DecayWidget(PictureWidget):
    """The score of a query and a key over their distance."""

    name = "Decay"


class ScalingWidget(PictureWidget):
    """The embedding's scaling method compared with others."""

    name = "Scaling"


WIDGETS: tuple[type[PictureWidget], ...] = (ClocksWidget, HandsWidget, FrequenciesWidget, DecayWidget, ScalingWidget)
assert [widget.name for widget in WIDGETS] == [*PICTURES]


@dataclasses.dataclass(frozen=True)
class StillPicture:
    """A picture without a widget, which a notebook shows as an image."""

    svg: str

    def _repr_svg_(self) -> str:
        return self.svg


def read_choices(picture: Picture, choices: dict[str, str]) -> dict[str, Any]:
    """Return the values of a picture's choices by key. Raise `ValueError` for an unknown choice or value."""
    known, found = {choice.name: choice for choice in picture.uses}, {}
    for name, written in choices.items():
        if name not in known:
            raise ValueError(TEXTS("choice", name=short_repr(name), names=", ".join(known)))
        if not isinstance(written, str):
            raise ValueError(TEXTS("value", name=name, value=short_repr(written)))
        found[known[name].key] = known[name].parse(written)
    return found


def show(address: str) -> PictureWidget | StillPicture:
    """Return a picture of the app for a notebook: one that moves if it has a widget, else an image.

    `address` is PAGE/PICTURE with the query that the app copies. Raise `ValueError` for an unknown picture or value.
    """
    picture, request, look = read_figure(address)
    for widget in WIDGETS:
        if find_picture(widget.name) is picture:
            return widget(request=request)
    return StillPicture(export.render(picture, request, "svg", look).decode())
