"""A dropped config is read once: the page that it opens asks the upload."""

import json
import traceback

import pytest

from rope_viz.models.model_config import ModelConfig
from tests.configs import QWEN3_8B
from tests.pages.test_own_config import GEMMA, paste_into


@pytest.mark.parametrize("page", ["scaling", "extend"])
@pytest.mark.parametrize("config", [QWEN3_8B, GEMMA], ids=["qwen3", "gemma"])
def test_first_run_of_a_page_reads_its_config_no_further_time(open_page, monkeypatch, page, config):
    paste_into(open_page(page), json.dumps({**config, "rope_theta": 66_666.0}))  # fills caches of the program
    dropped = {**config, "rope_theta": 55_555.0}
    read, mine = ModelConfig.read.__func__, []

    def count(cls, source, **options):
        found = read(cls, source, **options)
        # Pages also read configs that they have made of it, with another method.
        if found.mapping == dropped and not isinstance(source, ModelConfig):
            mine.append("".join(traceback.format_stack(limit=5)[:-1]))
        return found

    monkeypatch.setattr(ModelConfig, "read", classmethod(count))
    app = paste_into(open_page(page), json.dumps(dropped))
    assert not app.exception
    assert app.query_params["model"] == "custom"
    assert len(mine) <= 5, "\n".join(mine)
