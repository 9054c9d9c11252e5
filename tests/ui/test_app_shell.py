"""The server prepares answers before the first visit."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

from rope_viz.models.catalog import catalog
from rope_viz.pages.differences.figures import list_answers
from rope_viz.pages.model import extend
from rope_viz.picture import read_address
from rope_viz.texts import use_language
from rope_viz.texts.languages import list_languages
from rope_viz.ui import app_shell
from rope_viz.ui.components import scripts


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


def test_first_page_of_each_language_is_precomputed():
    with ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, app_shell.ahead()).result()
    for language in list_languages():
        with use_language(language):
            for function in (list_answers, scripts.version):
                before = function.cache_info().misses
                assert function()
                assert function.cache_info().misses == before
