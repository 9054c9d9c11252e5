"""`from … import *` works for every public package: `__all__` names what there is."""

import pkgutil

import rope_viz
from tests.offenders import for_each

PACKAGES = [
    "rope_viz",
    *(
        found.name
        for found in pkgutil.walk_packages(rope_viz.__path__, "rope_viz.")
        if found.ispkg and not any(part.startswith("_") for part in found.name.split("."))
    ),
]


@for_each(PACKAGES)
def test_everything_can_be_imported_from_a_public_package(name):
    found: dict = {}
    exec(f"from {name} import *", found)


def test_names_of_multi_axis_are_the_functions_of_its_docstring():
    from rope_viz import multi_axis

    assert all(callable(getattr(multi_axis, name)) and f"{name}(" in multi_axis.__doc__ for name in multi_axis.__all__)
