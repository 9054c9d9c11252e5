"""A test over many cases fails with all cases that fail."""

import pytest

from tests.offenders import for_each


def test_all_failing_cases_are_listed():
    @for_each([1, 2, 3, 4])
    def check_even(number):
        assert number % 2 == 0, "odd"

    with pytest.raises(AssertionError) as caught:
        check_even()
    text = str(caught.value)
    assert "2 of 4 cases fail" in text
    assert "1: odd" in text
    assert "3: odd" in text


def test_an_expected_error_that_is_not_raised_is_a_failure():
    @for_each({"first": "1", "second": "x"})
    def check_refused(text):
        with pytest.raises(ValueError, match="invalid literal"):
            int(text)

    with pytest.raises(AssertionError, match="1 of 2 cases fail:\nfirst: DID NOT RAISE"):
        check_refused()


def test_another_error_ends_the_test_and_names_its_case():
    @for_each({"first": 1, "second": 0})
    def divide(number):
        assert 1 / number

    with pytest.raises(ZeroDivisionError) as caught:
        divide()
    assert caught.value.__notes__ == ["in the case second"]


def test_a_claim_about_no_case_is_refused():
    with pytest.raises(AssertionError, match="no case"):
        for_each([])


@for_each(["a", "b"])
def test_other_arguments_are_fixtures(name, tmp_path):
    assert not (tmp_path / name).exists()
    (tmp_path / name).touch()
