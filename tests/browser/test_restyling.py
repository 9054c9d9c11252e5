"""Chromium restyles little of the page for a label that is measured; plotly.js measures dozens in a drawing."""

import json

MEASURE = """() => {
  const label = document.createElementNS("http://www.w3.org/2000/svg", "text");
  label.textContent = "label";
  document.querySelector("#js-plotly-tester").append(label);
  label.getBoundingClientRect();
}"""


def test_a_measured_label_restyles_little_of_the_page(visit):
    view = visit().open("/scaling")
    view.settle()
    browser, page = view.page.context.browser, view.page
    elements = page.evaluate("document.querySelectorAll('*').length")
    browser.start_tracing(page=page, categories=["devtools.timeline"])
    page.evaluate(MEASURE)
    events = json.loads(browser.stop_tracing())["traceEvents"]
    restyled = [each["args"].get("elementCount", 0) for each in events if each["name"] == "UpdateLayoutTree"]
    assert 0 < sum(restyled) < elements / 4
