"""The controls of the sidebar and the tools of pictures, each operated once."""

import re

from playwright.sync_api import expect

WIDER = """[...document.querySelectorAll('[data-testid=stSidebar] [data-knob]')]
  .filter((knob) => knob.getBoundingClientRect().width > knob.parentElement.clientWidth)
  .map((knob) => knob.dataset.knob)"""


def test_sidebar_controls_work(visit):
    view = visit().open("/frequencies")
    page = view.page
    for key in ("more", "source"):
        page.locator(f".st-key-{key} summary").click()
    expect(page.locator(".st-key-more [data-knob=rotary_dim]")).to_be_visible()
    assert page.evaluate(WIDER) == []
    for key, parameter in (("Scaling-method", "method"), ("Pairing", "pairing"), ("Model", "model")):
        page.locator(f".st-key-select-{key} input").click()
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        page.wait_for_url(re.compile(f"[?&]{parameter}="))
        view.settle()
    for knob in page.locator("[data-testid=stSidebar] [data-knob]").all():
        before, slider = page.url, knob.locator("input[type=range]")
        slider.focus()
        page.keyboard.press("ArrowLeft" if slider.input_value() == slider.get_attribute("max") else "ArrowRight")
        expect(page).not_to_have_url(before)
        view.settle()
    page.get_by_role("button", name="Reset to the model").click()
    expect(page.get_by_role("button", name="Reset to the model")).to_be_disabled()
    for name in ("Copy link", "Copy parameters (JSON)"):
        page.locator("#rv-share button").first.click()
        button = page.get_by_role("menuitem", name=name)
        button.evaluate("(node) => (window.__pressed = node)")
        button.click()
        view.until("/Copied|Not allowed/.test(window.__pressed.textContent)")
    page.locator(".st-key-words summary").click()
    expect(page.locator(".st-key-words details")).to_have_attribute("open", "")
    page.locator(".st-key-paste summary").click()
    field = page.get_by_label("config.json, rope_scaling")
    field.fill('{"model_type": "llama", "hidden_size": 2048, "num_attention_heads": 32, "rope_theta": 54321.0}')
    page.get_by_role("button", name="Use this config").click()
    expect(view.knob("base")).to_have_value("54321")
    view.settle()
    assert view.errors == []


def test_tools_of_charts_tables_and_dials_work(visit):
    view = visit().open("/scaling")
    page = view.page
    ends = "document.querySelector('.rv-plot')._fullLayout.xaxis.range.join()"
    whole = page.evaluate(ends)
    chart = page.locator('.rv-picture[data-picture="scaling/comparison"]')
    reset = chart.get_by_role("button", name="Reset view")
    expect(reset).to_have_count(0)
    chart.locator(".rv-plot").press("+")
    view.until(f"{ends} !== '{whole}'")
    near = page.evaluate(ends)
    chart.locator(".rv-plot").press("-")
    view.until(f"{ends} !== '{near}'")
    reset.click()
    view.until(f"{ends} === '{whole}'")
    expect(reset).to_have_count(0)
    expect(chart.locator(".rv-plot")).to_be_focused()
    table = view.scroll_to("scaling/methods")
    table.locator("th").nth(1).click()
    expect(table.locator("th").nth(1)).to_have_attribute("aria-sort", "ascending")
    view.open("/rotation?rotation.show=score&rotation.at=2000,1500")
    dials = page.locator(".rv-clocks")
    for name, m in (("more", 2001), ("less", 2000)):
        dials.locator(f"[data-do={name}]").click()
        expect(dials).to_have_attribute("data-m", str(m))
    for name, pressed in (("back", "true"), ("loop", "false"), ("n", "true"), ("m", "true"), ("both", "true")):
        dials.locator(f"[data-do={name}]").click()
        expect(dials.locator(f"[data-do={name}]")).to_have_attribute("aria-pressed", pressed)
    dials.locator("[data-do=speed]").focus()
    page.keyboard.press("End")
    expect(dials.locator("output")).to_have_text("100,000 tokens/s")
    assert view.errors == []
