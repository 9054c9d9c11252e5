"""Pages run without a browser: the frame with one page in it, by its address."""

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def open_page():
    """open_page("scaling", model="gpt-oss-20b") runs that page as a link would."""

    def run(page, **params):
        app = AppTest.from_file(str(ROOT / "pages" / "_frame.py"), default_timeout=60)
        app.query_params.update(params)
        if page != "home":
            app.switch_page(f"{page}.py")
        return app.run()

    return run


@pytest.fixture
def said():
    """said(app) is all text on the page, the sentences that follow a knob first."""
    return lambda app: " ".join(item.value for kind in ("html", "markdown") for item in app.get(kind))
