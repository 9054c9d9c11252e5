"""A frequency list dropped on the tab Training is identified; other files are refused with a reason."""

import json

import numpy as np
import pytest


@pytest.fixture
def drop(open_page):
    """drop(name, text) drops a file on the tab Training of Llama 3.1 8B."""

    def run(name, text):
        app = open_page("runtimes", model="llama-3.1-8b", **{"extend.tab": "training"})
        field = next(item for item in app.get("file_uploader") if item.key == "identify.file")
        return field.set_value((name, text.encode(), "application/octet-stream")).run()

    return run


def test_dropped_frequency_list_is_identified(drop, page_text):
    plain = 500000.0 ** (-np.arange(64) / 64)
    app = drop("inv_freq.json", json.dumps({"inv_freq": plain.tolist()}))
    assert not app.exception
    assert "base 500,000, no scaling" in page_text(app)
    assert "**scaling ignored**" in page_text(app)


def test_wrong_file_is_refused_with_a_reason(drop, page_text):
    app = drop("mine.json", '{"q": [1]}')
    assert not app.exception
    assert "has no 'rotated\\_q'; write" in app.warning[0].value
    app = drop("mine.json", json.dumps({"q": [1.0, 2.0], "rotated_q": [1.0, 2.0], "position": 1}))
    assert "a head of this config has 128" in app.warning[0].value
