"""The controls of the Precision page: the rounding, the position and the pinned pair."""

from playwright.sync_api import expect

MAP = "document.querySelectorAll('.rv-plot')[0]"


def test_published_error_is_shown_and_the_choice_enters_the_link(visit):
    view = visit().open("/precision?model=llama-2-7b")
    main = view.page.locator("[data-testid=stMain]")
    expect(main).to_contain_text("the largest angle error found up to 4,096 is 5 rad, at pair 1")
    view.page.get_by_role("combobox", name="What is rounded").click()
    view.page.get_by_role("option", name="Positions in bf16").click()
    expect(main).to_contain_text("pair 0 is the first, at 257")
    view.page.wait_for_url("**precision.where=bf16-positions**")
    expect(main).to_contain_text("rotary-embedding-torch")
    assert view.errors == []


def test_position_moves_the_sentence_and_the_vertical_line(visit):
    view = visit().open("/precision?model=llama-2-7b&precision.where=float32-angles")
    view.knob("position").fill("1M")
    view.knob("position").press("Enter")
    view.page.wait_for_url("**precision.position=1048576**")
    view.settle()
    shapes = view.page.evaluate(f"{MAP}._fullLayout.shapes.map((shape) => shape.x0)")
    assert any(abs(x - 1_048_576) < 1 for x in shapes)
    assert "up to 1,048,576" in view.page.locator("[data-testid=stMain]").inner_text()


def test_hover_shows_radians_and_a_click_pins_the_pair(visit):
    view = visit().open("/precision")
    box = view.page.locator(".rv-plot .nsewdrag").first.bounding_box()
    view.page.mouse.move(box["x"] + box["width"] * 0.7, box["y"] + box["height"] * 0.9)
    hover = view.page.locator(".rv-plot .hoverlayer").first
    expect(hover).to_contain_text("off by")
    text = hover.text_content()
    assert float(text.split("off by ")[1].split(" rad")[0]) > 0
    assert "pin=" not in view.page.url
    view.page.mouse.click(box["x"] + box["width"] * 0.9, box["y"] + box["height"] * 0.5)
    view.page.wait_for_url("**pin=**")
