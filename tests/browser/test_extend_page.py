"""The page My model: a dropped config, a chosen length, and the result for two runtimes."""

import json

import pytest
from playwright.sync_api import expect

from tests.configs import QWEN3_8B


def drop(view, config):
    view.drop(config)
    view.page.wait_for_url("**model=custom**")


def test_extend_page_gives_stock_qwen3_its_documented_factor(visit):
    view = visit(watched=True).open("/model?extend.tab=why")
    drop(view, QWEN3_8B)
    main = view.page.locator("[data-testid=stMain]")
    expect(main.get_by_text("max_position_embeddings 40,960 = 32,768 trained")).to_be_visible()
    command = main.locator(".st-key-command [data-testid=stCode]")
    expect(command).to_contain_text('"factor": 4.0')
    expect(command).to_contain_text('"original_max_position_embeddings": 32768')
    field = main.get_by_role("textbox", name="Context needed").first
    field.fill("64k")
    field.press("Enter")
    expect(command).to_contain_text("--max-model-len 65536")
    expect(command).to_contain_text('"factor": 2.0')
    view.page.wait_for_url("**target=65536**")
    with view.page.expect_download() as caught:
        main.get_by_role("button", name="Download config.json").click()
    written = json.loads(caught.value.path().read_bytes())
    assert written["rope_scaling"]["factor"] == 2.0
    assert written["num_key_value_heads"] == 8
    view.settle()
    main.get_by_role("radio", name="llama.cpp").click()
    expect(command).to_contain_text("--rope-scale 2.0 --yarn-orig-ctx 32768")
    assert view.errors == []
    assert view.foreign_requests == []


TEXT_TABLES = {
    "extend/ways": "model?extend.tab=why&",
    "runtimes/matrix": "model?extend.tab=runtimes&",
    "rotation/laws": "rotation?",
}


@pytest.mark.parametrize(("name", "path"), TEXT_TABLES.items())
def test_text_tables_fit_a_phone_without_sideways_scrolling(visit, name, path):
    view = visit(width=390, height=844, has_touch=True).open(f"/{path}model=phi-3.5-mini")
    wide, shown = (
        view.scroll_to(name).locator(".rv-words").evaluate("(sheet) => [sheet.scrollWidth, sheet.clientWidth]")
    )
    assert wide <= shown


def test_fine_tune_and_raised_limit_are_recognised(visit):
    view = visit().open("/model?extend.tab=why")
    drop(view, {**QWEN3_8B, "vocab_size": 152_064})
    main = view.page.locator("[data-testid=stMain]")
    expect(main.get_by_text("Recognised: a fine-tune of Qwen3 8B")).to_be_visible()
    drop(view, {**QWEN3_8B, "max_position_embeddings": 131_072})
    expect(main.get_by_text("max_position_embeddings is 131,072 without scaling")).to_be_visible()
    command = main.locator(".st-key-command [data-testid=stCode]")
    expect(command).to_contain_text('"original_max_position_embeddings": 32768')
    view.go("Scaling")
    sidebar = view.page.locator("[data-testid=stSidebar]")
    expect(sidebar.get_by_role("link", name="1 note: see My model")).to_be_visible()
    assert view.errors == []


def test_my_model_shows_the_strip_of_layers(visit):
    view = visit(watched=True).open("/model?model=gemma-3-27b-global")
    strip = view.scroll_to("extend/layers")
    expect(strip.get_by_role("img", name="10 with full attention and 52 with a window of 1,024 tokens")).to_be_visible()
    expect(view.page.locator('[data-says="extend/layers"]')).to_contain_text("Scaling reaches 10 of them")
    assert view.errors == []


def test_strip_of_layers_fits_a_phone_with_all_its_labels(visit):
    view = visit(width=390, height=844, has_touch=True).open("/model?model=llama-4-scout")
    strip = view.scroll_to("extend/layers")
    left = strip.locator(".ytick text").evaluate_all("(all) => all.map((each) => each.getBoundingClientRect().left)")
    assert len(left) == 3
    assert min(left) >= 0


def test_the_count_of_findings_opens_them(visit):
    view = visit().open("/model?model=internlm2.5-7b")
    button = view.page.locator(".st-key-found button").first
    expect(button).to_contain_text("3 notes")
    finding = view.page.get_by_text("cached keys keep the old base").first
    expect(finding).not_to_be_visible()
    button.click()
    expect(finding).to_be_visible()
    button.press("Escape")
    expect(finding).not_to_be_visible()
    assert view.errors == []
