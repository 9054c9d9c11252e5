"""The page Two models: a button exchanges them."""


def test_the_button_exchanges_the_two_models(open_page):
    app = open_page("compare", **{"model": "qwen3-8b", "compare.with": "llama-2-7b"})
    next(each for each in app.button if each.key == "swap").click().run()
    assert (app.query_params["model"], app.query_params["compare.with"]) == ("llama-2-7b", "qwen3-8b")
