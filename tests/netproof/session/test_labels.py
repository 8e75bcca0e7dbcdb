"""Labels as people state them."""

from __future__ import annotations

import pytest

from netproof.errors import NetproofError
from netproof.session.session import label_of


def test_a_label_is_all_before_and_after_the_first_equals_sign():
    assert label_of("kernel=6.1") == ("kernel", "6.1")
    assert label_of("options=a=b") == ("options", "a=b")
    assert label_of("note=") == ("note", "")


@pytest.mark.parametrize("stated", ["", "kernel", "=6.1"])
def test_another_form_is_refused_with_an_example(stated):
    with pytest.raises(NetproofError, match=r"is no label: KEY=VALUE, kernel=6\.1 for instance"):
        label_of(stated)
