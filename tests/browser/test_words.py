"""Terms are explained where they are met: one sentence beside the word, by mouse and by key; the list ends a page."""

ADDRESSES = ["/", "/rotation", "/frequencies", "/scaling", "/decay", "/axes", "/runtimes", "/attention", "/precision"]


def test_a_term_of_every_page_says_its_sentence_and_lets_go(visit):
    seen = visit()
    for address in (*ADDRESSES, "/kernels", "/learn?learn.step=12"):
        term_says_its_sentence(seen.open(address))
    assert seen.errors == []


def term_says_its_sentence(seen):
    word = seen.page.locator('main a[href^="#word-"]').first
    word.scroll_into_view_if_needed()
    word.focus()
    seen.page.keyboard.press("Enter")
    note = seen.page.locator(".rv-sentence")
    assert note.inner_text().lower().startswith(word.inner_text().rstrip("s").lower())
    box = note.bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 1440
    seen.page.keyboard.press("Escape")
    assert note.count() == 0
    assert seen.page.evaluate("document.activeElement.hash.startsWith('#word-')")
    assert "#" not in seen.page.url


def test_every_page_has_one_next_step_in_this_tab(visit):
    seen = visit().open("/frequencies?base=77000")
    seen.page.get_by_role("link", name="Now see what scaling does").click()
    seen.page.wait_for_url("**/scaling**")
    seen.settle()
    assert "base=77000" in seen.page.url
    assert len(seen.page.context.pages) == 1
