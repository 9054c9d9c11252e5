"""The Kernels page measures when asked, one measurement at a time, and stays usable meanwhile."""

import json

import pytest
from playwright.sync_api import expect

SMALLEST = "/kernels?kernels.compile=no"
BARS = ".rv-chart >> nth=1"
LONG = 180_000


def measure(seen):
    seen.page.get_by_role("button", name="Measure", exact=True).click()


@pytest.fixture
def no_run_left(visit):
    """Other tests, and the next one, want the server's only place: a test that stopped its own run says so."""
    stopped = []
    yield stopped
    if stopped:
        return
    seen = visit().open(SMALLEST)
    for _ in range(300):
        measure(seen)
        stop = seen.page.get_by_role("button", name="Stop", exact=True)
        busy = seen.page.get_by_text("Another measurement is running")
        expect(stop.or_(busy).first).to_be_visible(timeout=LONG)
        if stop.count():
            stop.click()
            expect(seen.page.get_by_text("The measurement was stopped.")).to_be_visible(timeout=LONG)
            return
        seen.page.wait_for_timeout(1000)


def test_measurement_runs_only_after_the_button(visit):
    seen = visit().open(SMALLEST)
    assert seen.page.locator(".rv-chart").count() == 1
    measure(seen)
    expect(seen.page.locator(BARS)).to_be_visible(timeout=LONG)
    seen.look("kernels/speeds")
    bars = "document.querySelectorAll('.rv-plot')[1].data[0]"
    assert {"ours, out=", "eager rotate_half", "dense matrix"} <= set(seen.page.evaluate(f"{bars}.y"))
    assert seen.page.evaluate(f"Array.from({bars}.x).every((speed) => speed > 0)")
    # What stands further down is asked for once it comes near the view.
    seen.page.locator('[data-says="kernels/ways"]').scroll_into_view_if_needed()
    expect(seen.page.get_by_text("Did not run: flash-attention")).to_be_visible(timeout=LONG)
    assert seen.page.locator('[data-testid="stException"]').count() == 0
    seen.settle()

    with seen.page.expect_download() as caught:
        seen.page.get_by_role("button", name="Download the measurement").click()
    found = json.loads(caught.value.path().read_text())
    assert found["workload"]["tokens"] == 1024
    assert found["ways"]["ours, out="]["error"] < 1e-6
    assert len(found["agreement"]) >= 8

    seen.go("Decay")
    seen.go("Kernels")
    expect(seen.page.locator(BARS)).to_be_visible(timeout=LONG)
    assert seen.errors == []


def test_measurement_survives_navigation_and_can_be_stopped(visit, no_run_left):
    seen, other = visit().open("/kernels?kernels.tokens=16384"), visit().open(SMALLEST)
    measure(seen)
    stop = seen.page.get_by_role("button", name="Stop", exact=True)
    expect(stop).to_be_visible(timeout=LONG)
    expect(seen.page.get_by_role("button", name="Measure", exact=True)).to_be_disabled()
    measure(other)
    expect(other.page.get_by_text("Another measurement is running on this server")).to_be_visible(timeout=LONG)
    seen.go("Decay")
    seen.go("Kernels")
    expect(stop).to_be_visible(timeout=LONG)
    stop.click()
    expect(seen.page.get_by_text("The measurement was stopped.")).to_be_visible(timeout=LONG)
    expect(seen.page.get_by_role("button", name="Measure", exact=True)).to_be_enabled()
    no_run_left.append(True)
    assert seen.errors == other.errors == []
