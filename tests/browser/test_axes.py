"""The page Axes: two maps, dragged borders, a prompt built from pieces, and a moved patch."""

from playwright.sync_api import expect

MAP = "document.querySelector('[data-picture=\"axes/sight\"] .rv-plot')"
TICKS = "document.querySelector('[data-picture=\"axes/speeds\"] .rv-plot')"
PATCH = "document.querySelector('[data-picture=\"axes/clocks\"]')"


def choose(view, label, entry):
    box = view.page.get_by_role("combobox", name=label)
    box.click()
    box.fill(entry)
    view.page.get_by_role("option", name=entry, exact=True).click()


def test_a_cell_is_marked_in_both_maps(visit):
    view = visit().open("/axes")
    view.until(f"{MAP}?.data?.length === 2")
    assert "32 columns away is 1.000" in view.page.locator(".rv-says").first.inner_text()
    box = view.page.locator(".rv-plot").first.locator(".nsewdrag").first.bounding_box()
    view.page.mouse.move(box["x"] + box["width"] * 0.8, box["y"] + box["height"] * 0.3)
    view.page.mouse.move(box["x"] + box["width"] * 0.81, box["y"] + box["height"] * 0.3)
    expect(view.page.locator(".rv-mark")).to_have_count(1)
    choose(view, "Model on this page", "RoPE-ViT axial B/16")
    view.page.wait_for_url("**axes.model=rope-vit-axial-b**")
    view.until(f"{MAP}?.data?.[0].name === 'RoPE-ViT axial B/16, vision'")
    assert view.errors == []


def test_keys_and_pointer_move_the_patch_and_a_border(visit):
    view = visit().open("/axes")
    place = view.scroll_to("axes/clocks")
    canvas = place.locator("canvas")
    canvas.focus()
    canvas.press("ArrowDown")
    canvas.press("ArrowRight")
    view.until(f"{PATCH}.dataset.row === '19' && {PATCH}.dataset.column === '19'")
    view.page.wait_for_url("**axes.at=19%2C19**")
    box = canvas.bounding_box()
    view.page.mouse.move(box["x"] + box["width"] - 20, box["y"] + 80)
    view.until(f"Number({PATCH}.dataset.column) > 30")

    view.scroll_to("axes/speeds")
    border = view.page.get_by_role("slider", name="Border between row and column")
    border.focus()
    for _ in range(4):
        border.press("ArrowRight")
    view.page.wait_for_url("**axes.sections=16%2C28%2C20**")
    view.until(f"{TICKS}.data[1].x.length === 28 && {TICKS}.data[2].x.length === 20")
    box = border.bounding_box()
    view.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 20)
    view.page.mouse.down()
    view.page.mouse.move(box["x"] + box["width"] / 2 - 100, box["y"] + 20, steps=4)
    view.until(f"{TICKS}.data[2].x.length > 20")
    view.page.mouse.up()
    view.page.wait_for_url(lambda url: "axes.sections" in url and "16%2C28%2C20" not in url)
    view.page.get_by_role("radio", name="Interleaved").click()
    view.page.wait_for_url("**axes.way=interleaved**")
    view.settle()
    assert view.errors == []


def test_prompt_cards_and_prompt_line_stay_equal(visit):
    view = visit().open("/axes?axes.prompt=text+4,+image+112x84")
    view.scroll_to("axes/positions")
    sentence = view.page.locator("[data-says='axes/positions']")
    expect(sentence).to_contain_text("An image of 112 × 84 pixels has 12 tokens and takes 4 positions")
    expect(sentence).to_contain_text("vLLM gives every token the same positions")
    button = view.page.get_by_role("button", name="Add video")
    button.focus()
    button.press("Enter")
    view.page.wait_for_url("**2C+video+448x336+10s+1fps")
    field = view.page.get_by_role("textbox", name="piece 3 (video): seconds")
    field.fill("8")
    field.press("Enter")
    expect(sentence).to_contain_text("A video of 448 × 336 pixels and 8 s has 768 tokens")
    # The moved piece keeps the focus, and keys change its numbers.
    earlier = view.page.get_by_role("button", name="Move piece 3 (video) earlier")
    earlier.press("Enter")
    view.page.wait_for_url("**text+4%2C+video+448x336+8s+1fps%2C+image+112x84")
    expect(view.page.get_by_role("button", name="Move piece 2 (video) earlier")).to_be_focused()
    view.page.get_by_role("textbox", name="piece 3 (image): height in pixels").press("PageUp")
    view.page.wait_for_url("**2C+image+112x100")
    view.page.locator("[data-piece='1']").hover()
    view.page.get_by_role("button", name="Remove piece 2 (video)").click()
    view.page.wait_for_url("**axes.prompt=text+4%2C+image+112x100")
    expect(sentence).not_to_contain_text("video")
    assert view.errors == []


def test_an_unreadable_prompt_warns_and_keeps_its_pieces(visit):
    view = visit().open("/axes?axes.prompt=text+4,+image+112x84")
    view.scroll_to("axes/positions")
    wide = view.page.get_by_role("textbox", name="piece 2 (image): width in pixels")
    wide.fill("0.5")
    wide.press("Enter")
    expect(view.page.get_by_role("alert").filter(has_text="width in pixels must be a whole number")).to_be_visible()
    assert "image+112x84" in view.page.url
    field = view.page.get_by_role("textbox", name="Prompt", exact=True)
    field.fill("a picture of a cat")
    field.press("Enter")
    expect(view.page.locator("[data-testid=stAlert]")).to_contain_text("pieces separated by commas")
    expect(view.page.get_by_role("textbox", name="piece 2 (image): height in pixels")).to_have_value("84")
    assert view.errors == []


def test_riflex_lowers_the_peak_beyond_the_trained_frames(visit):
    view = visit().open("/axes?axes.model=hunyuan-video")
    view.scroll_to("axes/further")
    sentence = view.page.locator("[data-says='axes/further']")
    expect(sentence).to_contain_text("rises again, highest at 50: 0.57")
    view.page.get_by_role("radio", name="RIFLEx").click()
    expect(sentence).to_contain_text("As trained, the score rises again to 0.57 at 50; with RIFLEx it is 0.40 there")
    assert view.errors == []


def test_the_sidebar_model_with_several_axes_is_shown(visit):
    view = visit().open("/axes?model=qwen3.5-9b")
    expect(view.page.get_by_role("combobox", name="Model on this page")).to_be_visible()
    assert view.page.evaluate(f"{MAP}?.data?.[0].name").startswith("Qwen3.5 9B")
    view.knob("base").fill("20000")
    view.knob("base").press("Enter")
    view.page.wait_for_url("**base=20000**")
    view.settle()
    assert "0.9" in view.page.locator(".rv-says").first.inner_text()
    assert view.errors == []
