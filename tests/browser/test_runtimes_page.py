"""A faulty config on My model: dropped, repaired, downloaded, and dropped again."""

import json

from playwright.sync_api import expect

from tests.configs import FAULTY_QWEN3


def test_dropped_faulty_config_is_repaired(visit):
    view = visit(watched=True).open("/model?extend.tab=runtimes")
    tab = view.page
    view.drop(FAULTY_QWEN3)
    tab.wait_for_url("**model=custom**")
    view.settle()
    main = tab.locator("[data-testid=stMain]")
    finding = main.get_by_text("original_max_position_embeddings is missing").first
    expect(finding).to_be_visible()
    expect(finding).to_contain_text("off by up to ×1.176")
    with tab.expect_download() as caught:
        tab.get_by_role("button", name="Download the repaired config.json").click()
    repaired = caught.value.path().read_bytes()
    assert caught.value.suggested_filename == "config.json"
    assert json.loads(repaired)["rope_scaling"]["original_max_position_embeddings"] == 32768
    view.drop(repaired)
    expect(main.get_by_text("No problems found.")).to_be_visible()
    assert view.errors == []
    assert view.foreign_requests == []


NO_CONFIGS = [
    ("config.json", b'{"model_type": "qwen3", "rope_theta": NaN', "It is not JSON"),
    ("config.json", b" " * (5 << 20), "larger than 4 MiB"),
    ("model.bin", b"\x80\x04PK", "not text in UTF-8"),
]


def test_invalid_file_shows_a_card_and_keeps_the_model(visit):
    view = visit().open("/model?extend.tab=runtimes&model=kimi-k2-instruct")
    main = view.page.locator("[data-testid=stMain]")
    row = view.page.locator(".rv-table tr", has_text="llama.cpp")
    for name, content, reason in NO_CONFIGS:
        view.drop(content, name)
        card = view.page.get_by_role("alert").filter(has_text="This config cannot be read")
        expect(card).to_contain_text(reason)
        expect(card).to_contain_text(name)
        expect(main.get_by_text("at pair 19")).to_have_count(0)
        expect(row).to_have_count(0)
        assert "kimi-k2-instruct" in view.page.url
    main.get_by_role("button", name="Keep showing Kimi-K2-Instruct").click()
    expect(card).to_have_count(0)
    view.settle()
    expect(main).to_contain_text("×8.93 at pair 19")
    view.scroll_to("runtimes/matrix")
    expect(row.first).to_contain_text("--yarn-beta-fast 1.0 --yarn-beta-slow 1.0")
    assert view.errors == []
