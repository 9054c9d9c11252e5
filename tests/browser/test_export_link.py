"""Ranges and scales set by number stay in the page's link and reappear in the dialog."""

from urllib.parse import parse_qs, urlsplit

from tests.browser.figure_tools import customise

OPEN = "dialog.rv-export[data-state=shown]"
WORD = "axes-frequencies-wavelengths"


def dialog(seen):
    customise(seen.look("frequencies/wavelengths"))
    return seen.page.locator("dialog.rv-export")


def query(seen):
    return parse_qs(urlsplit(seen.page.url).query)


def test_typed_ranges_stay_in_the_link_with_the_servers_keys(visit):
    seen = visit().open("/frequencies?base=77000")
    found = dialog(seen)
    found.locator("[name=xmin]").fill("16")
    found.locator("[name=ymax]").fill("1e6")
    found.locator("[name=yscale]").select_option("linear")
    seen.until(f"decodeURIComponent(location.search).includes('{WORD}=xmin:16;ymax:1e6;yscale:linear')")
    seen.page.keyboard.press("Escape")
    seen.slider("head_dim").focus()
    seen.page.keyboard.press("ArrowRight")
    seen.until("location.search.includes('dim=130')")
    seen.settle()
    assert query(seen)[WORD] == ["xmin:16;ymax:1e6;yscale:linear"]
    assert query(seen)["base"] == ["77000"]

    other = visit().open(seen.page.url.removeprefix(seen.url))
    other.slider("head_dim").focus()
    other.page.keyboard.press("ArrowRight")
    other.until("location.search.includes('dim=132')")
    other.settle()
    found = dialog(other)
    other.page.wait_for_selector(OPEN)
    values = {name: found.locator(f"[name={name}]").input_value() for name in ("xmin", "xmax", "ymax", "yscale")}
    assert values == {"xmin": "16", "xmax": "", "ymax": "1e6", "yscale": "linear"}
    address = parse_qs(urlsplit(found.locator("[name=address]").input_value()).query)
    assert (address["xmin"], address["ymax"], address["yscale"]) == (["16"], ["1e6"], ["linear"])
    # Taken away there they are taken out of the link, though the server has read them.
    found.locator("[name=xmin]").fill("")
    found.locator("[name=ymax]").fill("")
    found.locator("[name=yscale]").select_option("")
    other.until("!location.search.includes('axes-')")
    other.page.keyboard.press("Escape")
    other.slider("head_dim").focus()
    other.page.keyboard.press("ArrowLeft")
    other.until("location.search.includes('dim=130')")
    other.settle()
    assert WORD not in query(other)
    assert seen.errors + other.errors == []


def test_axis_ranges_do_not_follow_to_another_page(visit):
    seen = visit().open(f"/frequencies?base=77000&{WORD}=xmin:16;yscale:nonsense;other:1;")
    seen.go("Scaling")
    assert query(seen) == {"base": ["77000"]}
    assert seen.errors == []
