"""The Kernels page measures on request, one measurement at a time, and stays usable meanwhile."""

import json

import pytest
from playwright.sync_api import expect

SMALLEST = "/kernels?kernels.compile=no"
BARS = '.rv-picture[data-picture="kernels/speeds"]'
LONG = 180_000


def measure(view):
    view.page.get_by_role("button", name="Measure", exact=True).click()


@pytest.fixture
def free_measurement(visit):
    """Stop the measurement that a failed test left running: the server allows only one."""
    stopped = []
    yield stopped
    if stopped:
        return
    view = visit().open(SMALLEST)
    for _ in range(300):
        measure(view)
        stop = view.page.get_by_role("button", name="Stop", exact=True)
        busy = view.page.get_by_text("Another measurement is running")
        expect(stop.or_(busy).first).to_be_visible(timeout=LONG)
        if stop.count():
            stop.click()
            expect(view.page.get_by_text("The measurement was stopped.")).to_be_visible(timeout=LONG)
            return
        view.settle()


def test_measurement_runs_only_after_the_button(visit):
    view = visit().open(SMALLEST)
    assert view.page.locator(BARS).count() == 0
    measure(view)
    expect(view.page.locator(BARS)).to_be_visible(timeout=LONG)
    view.scroll_to("kernels/speeds")
    bars = f"document.querySelector('{BARS} .rv-plot').data[0]"
    assert {"ours, out=", "eager rotate_half", "dense matrix"} <= set(view.page.evaluate(f"{bars}.y"))
    assert view.page.evaluate(f"Array.from({bars}.x).every((speed) => speed > 0)")
    # A picture is requested when it is near the view.
    view.page.locator('[data-says="kernels/ways"]').scroll_into_view_if_needed()
    expect(view.page.get_by_text("Did not run: flash-attention")).to_be_visible(timeout=LONG)
    assert view.page.locator('[data-testid="stException"]').count() == 0
    view.settle()

    with view.page.expect_download() as caught:
        view.page.get_by_role("button", name="Download the measurement").click()
    found = json.loads(caught.value.path().read_text())
    assert found["workload"]["tokens"] == 1024
    assert found["ways"]["ours, out="]["error"] < 1e-6
    assert len(found["agreement"]) >= 8

    view.go("Decay")
    view.go("Kernels")
    expect(view.page.locator(BARS)).to_be_visible(timeout=LONG)
    assert view.errors == []


def test_measurement_survives_navigation_and_can_be_stopped(visit, free_measurement):
    view, other = visit().open("/kernels?kernels.tokens=16384"), visit().open(SMALLEST)
    measure(view)
    stop = view.page.get_by_role("button", name="Stop", exact=True)
    expect(stop).to_be_visible(timeout=LONG)
    expect(view.page.get_by_role("button", name="Measure", exact=True)).to_be_disabled()
    measure(other)
    expect(other.page.get_by_text("Another measurement is running on this server")).to_be_visible(timeout=LONG)
    view.go("Decay")
    view.go("Kernels")
    expect(stop).to_be_visible(timeout=LONG)
    stop.click()
    expect(view.page.get_by_text("The measurement was stopped.")).to_be_visible(timeout=LONG)
    expect(view.page.get_by_role("button", name="Measure", exact=True)).to_be_enabled()
    free_measurement.append(True)
    assert view.errors == other.errors == []


@pytest.mark.parametrize("width", [1440, 390])
def test_measurement_of_a_card_is_shown_without_a_gpu(visit, width):
    view = visit(width=width).open("/kernels")
    expect(view.page.get_by_role("heading", name="NVIDIA H200, measured 2026-11-27")).to_be_visible()
    place = view.scroll_to("kernels/cards")
    expect(place.get_by_text("32 + 8 heads of 128: 98%")).to_be_visible()
    expect(place.get_by_text("● rope_viz, error 1.64·10⁻³")).to_be_visible()
    expect(view.page.get_by_text("Not measured: flash-attention")).to_be_visible()
    view.page.get_by_text("NVIDIA H200, 2026-11-26", exact=True).click()
    expect(view.page.get_by_role("heading", name="NVIDIA H200, measured 2026-11-26")).to_be_visible()
    expect(place.get_by_text("★ flash-attention")).to_be_visible()
    assert view.page.evaluate("document.documentElement.scrollWidth") <= width
    assert view.errors == []
