"""The stand-ins for names of `typing` do at run time what the program needs of them."""

from __future__ import annotations

from publish.domain import light_typing


def test_a_generic_class_ignores_its_parameters() -> None:
    generic = vars(light_typing)["Generic"]
    assert generic["anything"] is generic
