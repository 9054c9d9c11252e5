"""Check the addresses that tests open: for an unknown name the app shows its default, and a test would not notice."""

from collections.abc import Mapping
from urllib.parse import parse_qsl, urlsplit

from rope_viz.models import spec_url
from rope_viz.pages import learn, registry
from rope_viz.pages.registry import groups_of, moved, titles
from rope_viz.picture import read_address
from rope_viz.ui import controls

OLD_KEYS = (read_address.COMPARED_MODELS, learn.OLD_KEY)
"""Keys of older releases, which the app replaces before it checks the address."""


def check_address(path: str, *, is_valid: bool = True) -> None:
    """Raise `AssertionError` if the app finds a problem in an address, or finds none where the test expects one."""
    parts = urlsplit(path)
    page = parts.path.strip("/") or "home"
    check_query(page, dict(parse_qsl(parts.query, keep_blank_values=True)), is_valid=is_valid)


def check_query(page: str, query: Mapping[str, str], *, is_valid: bool = True) -> None:
    """Check a page's name and its query like `check_address`."""
    problems = list_problems(page, query)
    assert not (is_valid and problems), f"the app cannot read this address: {problems}"
    assert is_valid or problems, "the app has no problem with this address: open it without is_valid=False"


def list_problems(page: str, query: Mapping[str, str]) -> list[str]:
    """Return the app's problems with the page, the model's values, the choices and the presented picture."""
    page = moved().get(page, (page, ""))[0]
    if page not in titles():
        return [f"there is no page {page!r}"]
    known = {key: value for key, value in query.items() if key in spec_url.KEYS}
    choices = {key: value for key, value in query.items() if key not in OLD_KEYS}
    problems = [*spec_url.read_query(known)[1], *controls.find_address_problems(choices)]
    pictures = {name for group in groups_of(page) for name in registry.page(group).pictures}
    if query.get("present", "1") not in {"1", *pictures}:
        problems.append(f"{page} has no picture {query['present']!r} to present")
    return problems
