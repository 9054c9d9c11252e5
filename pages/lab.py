"""The index of the Lab."""

from rope_viz.pages.registry import doors, text_of, title_of
from rope_viz.ui import page

page.start(title_of("lab"))
page.paragraph(text_of("lab", "about"))
for name in doors()["lab"][1:]:
    page.paragraph(f"[**{title_of(name)}**](/{name})  \n{text_of(name, 'summary')}")
