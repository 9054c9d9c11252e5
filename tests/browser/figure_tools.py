"""Press the tools of a figure; `place` is a locator of its `.rv-picture`."""


def show_tools(place):
    """Show the tools, which are behind one button except at the page's first figure."""
    more = place.locator(".rv-tools [data-do=more]")
    if more.count() and more.get_attribute("aria-expanded") == "false":
        more.click()


def customise(place):
    """Open the export dialog."""
    show_tools(place)
    place.locator("[data-do=customise]").click()


def pick(place, menu, item):
    """Open a menu, "download" or "share", and press one of its items."""
    show_tools(place)
    place.locator(f"[data-do={menu}]").click()
    place.locator(f"[data-item={item}]").click()


def download(place, form):
    """Download one of the figure's files; return its bytes and the suggested name."""
    with place.page.expect_download() as caught:
        pick(place, "download", form)
    return caught.value.path().read_bytes(), caught.value.suggested_filename
