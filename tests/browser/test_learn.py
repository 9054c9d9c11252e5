"""The tour as a newcomer takes it: a step is done by hand, says so, and leads on. test_keyboard.py goes through all."""

import pytest


@pytest.mark.parametrize(("number", "knob", "value"), [(2, "m", "3"), (7, "base", "500000"), (12, "factor", "8")])
def test_knob_completes_the_task_of_a_step(visit, number, knob, value):
    seen = visit().open(f"/learn?learn.step={number}")
    field = seen.knob(knob)
    field.fill(value)
    field.press("Enter")
    seen.until("document.querySelector('[data-testid=stAlert]').innerText.includes('Done.')")
    assert seen.errors == []


def test_step_opens_paused_at_its_exact_position(visit):
    seen = visit(width=390, height=844, dark=True).open("/learn?learn.step=9")
    field = seen.page.locator("[data-do=at]")
    assert field.input_value() == "12000"
    assert seen.page.locator("[data-do=play]").inner_text() == "Play"
    field.fill("3000")
    field.press("Enter")
    seen.until("document.querySelector('[data-testid=stAlert]').innerText.includes('Done.')")
    assert "rotation.at=3000" in seen.page.url


def test_phone_header_leads_from_the_tour_to_its_end(visit):
    seen = visit(width=390, height=844, has_touch=True).open("/")
    for name, head in (("Learn", "1. Why position at all?"), ("Lab", "Lab overview"), ("Precision", "Precision")):
        seen.page.locator("#rv-header").get_by_role("link", name=name, exact=True).tap()
        seen.until(f"document.querySelector('h1').innerText === {head!r}")
        seen.settle()
    assert seen.page.locator(".rv-chart").first.is_visible()
    assert seen.errors == []


def test_leaving_the_tour_restores_the_users_model(visit):
    seen = visit().open("/scaling?model=qwen3-8b-yarn")
    seen.page.get_by_role("link", name="Learn").first.click()
    seen.until("document.querySelector('h1').innerText.startsWith('1.')")
    seen.settle()
    assert not seen.page.get_by_test_id("stSidebar").is_visible(), "its room stays empty"
    seen.page.get_by_role("button", name="Next").click()
    seen.until("document.querySelector('h1').innerText.startsWith('2.')")
    seen.settle()
    seen.go("Scaling")
    assert seen.page.get_by_test_id("stSidebar").is_visible()
    assert "model=qwen3-8b-yarn" in seen.page.url
    seen.open("/learn?learn.step=9")
    seen.page.get_by_text("Open in Rotation").click()
    seen.until("document.querySelector('h1').innerText === 'Rotation'")
    seen.settle()
    assert "model=llama-2-7b" in seen.page.url
    assert seen.is_alone()


def test_arrow_and_its_numbers_fit_on_a_phone(visit):
    """Wherever it points: right, up, left, down."""
    seen = visit(width=390, height=844)
    for m in (0, 2, 3, 5):
        seen.open(f"/learn?learn.step=2&learn.m={m}")
        edge = seen.page.locator(".rv-chart .main-svg").first.bounding_box()
        for label in seen.page.locator(".rv-chart .annotation-text").all():
            box = label.bounding_box()
            assert edge["x"] <= box["x"]
            assert box["x"] + box["width"] <= edge["x"] + edge["width"], f"{label.inner_text()} is cut at m = {m}"
