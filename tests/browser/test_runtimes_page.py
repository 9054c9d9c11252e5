"""A real config file on the page Runtimes: dropped, found faulty, repaired, downloaded, dropped again."""

import json

from playwright.sync_api import expect

from tests.configs import FAULTY_QWEN3


def drop(seen, content, name="config.json"):
    field = seen.page.locator("section input[type=file], [data-testid=stFileUploader] input[type=file]").first
    field.set_input_files({"name": name, "mimeType": "application/json", "buffer": content})


def test_dropped_faulty_config_is_repaired(visit):
    seen = visit(watched=True).open("/runtimes")
    tab = seen.page
    drop(seen, json.dumps(FAULTY_QWEN3).encode())
    tab.wait_for_url("**model=custom**")
    seen.settle()
    main = tab.locator("[data-testid=stMain]")
    finding = main.get_by_text("original_max_position_embeddings is missing").first
    expect(finding).to_be_visible()
    expect(finding).to_contain_text("off by up to ×1.176")
    with tab.expect_download() as caught:
        tab.get_by_role("button", name="Download the repaired config.json").click()
    repaired = caught.value.path().read_bytes()
    assert caught.value.suggested_filename == "config.json"
    assert json.loads(repaired)["rope_scaling"]["original_max_position_embeddings"] == 32768
    drop(seen, repaired)
    expect(main.get_by_text("No problems found.")).to_be_visible()
    assert seen.errors == []
    assert seen.elsewhere == []


NO_CONFIGS = [
    ("config.json", b'{"model_type": "qwen3", "rope_theta": NaN', "it is not JSON"),
    ("config.json", b" " * (5 << 20), "larger than 4 MiB"),
    ("model.bin", b"\x80\x04PK", "not text in UTF-8"),
]


def test_invalid_file_shows_an_error_and_the_model_stays(visit):
    seen = visit().open("/runtimes?model=kimi-k2-instruct")
    row = seen.page.locator(".rv-table tr", has_text="llama.cpp")
    for name, content, said in NO_CONFIGS:
        drop(seen, content, name)
        alert = seen.page.locator("[data-testid=stSidebar] [data-testid=stAlert]")
        # Of the file before it another is said.
        expect(alert).to_contain_text(said)
        expect(alert).to_contain_text("Could not read this config")
        seen.settle()
        assert "kimi-k2-instruct" in seen.page.url
        assert "×8.93 at pair 19" in seen.page.locator("[data-testid=stMain]").inner_text()
        expect(row).to_contain_text("--yarn-beta-fast 1.0 --yarn-beta-slow 1.0")
    assert seen.errors == []
