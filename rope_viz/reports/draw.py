"""A picture as a file from Python, by the same address as in a browser or on the command line."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlsplit

from rope_viz.figures.files.style import Style, is_key
from rope_viz.pages import registry
from rope_viz.picture import export, read_address


def figure(address: str, form: str = "svg") -> bytes:
    """Return a picture as a file.

        open("plot.svg", "wb").write(figure("scaling/comparison?model=qwen3-8b-yarn&width=85mm"))

    `address` is PAGE/PICTURE with the query that the app copies; `form` is svg, pdf, png, html, csv or json. Raises
    `ValueError` for an unknown picture, form or value.
    """
    if form not in export.FORMS or form == "packed":
        forms = ", ".join(name for name in export.FORMS if name != "packed")
        raise ValueError(f"the form must be one of {forms}, got {form!r}")
    parts = urlsplit(address)
    page, _, name = "/".join(parts.path.strip("/").split("/")[-2:]).partition("/")
    try:
        picture = registry.picture(page, name.partition(".")[0])
    except KeyError as error:
        raise ValueError(error.args[0]) from None
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    look = Style.read({key: query.pop(key) for key in list(query) if is_key(key)})
    request = read_address.read_request(registry.page(picture.page), query)
    return export.render(picture, picture.finished(request), form, look)
