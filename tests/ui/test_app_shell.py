"""The server prepares answers before the first visit."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

from rope_viz.models.catalog import catalog
from rope_viz.pages.model import extend
from rope_viz.picture import read_address
from rope_viz.ui import app_shell


def test_extend_answers_of_the_catalog_are_precomputed():
    with ThreadPoolExecutor(1) as pool:  # Playwright runs an event loop in the main thread
        pool.submit(asyncio.run, app_shell.ahead()).result()
    before = extend._answer.cache_info()
    answered = [
        extend.answer(request)
        for model in catalog()
        if not extend.problem(request := read_address.read_request(extend.PAGE, {"model": model}))
    ]
    after = extend._answer.cache_info()
    assert len(answered) > 40
    assert (after.misses, after.hits) == (before.misses, before.hits + len(answered))
