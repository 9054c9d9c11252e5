"""The report of a model opens offline with all its pictures."""

from rope_viz.cli.main import main
from rope_viz.pages import registry

PICTURES = [picture for picture in registry.pictures() if picture.page in ("home", "rotation", "scaling", "axes")]


def test_report_draws_offline_without_any_request(chromium, tmp_path, monkeypatch):
    monkeypatch.setattr(registry, "pictures", lambda: PICTURES)
    path = tmp_path / "report.html"
    assert main(["report", "qwen3-8b-yarn", "-o", str(path)]) == 0
    page = chromium.new_context(offline=True).new_page()
    errors, requests = [], []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("request", lambda request: requests.append(request.url))
    page.goto(path.as_uri())
    for place in ("scaling-comparison", "rotation-matrices"):
        page.locator(f"#{place}").scroll_into_view_if_needed()
        page.wait_for_selector(f"#{place} .main-svg")
    moving = [picture for picture in PICTURES if picture.kind.__name__ in ("Clocks", "Patch", "Hands")]
    assert {picture.kind.__name__ for picture in moving} == {"Clocks", "Patch", "Hands"}
    for picture in moving:
        page.wait_for_selector(f"#{picture.address.replace('/', '-')} canvas", state="attached")
    assert errors == []
    assert all(url.startswith(("file:", "data:", "blob:")) for url in requests)
