"""Messages about a text name its line."""

import re

from netproof.intake.numbering import numbered


def test_each_match_has_the_number_of_its_line():
    text = "a\n\nb a\nb\na"
    found = [(number, one.start()) for number, one in numbered(re.compile("a"), text)]
    assert found == [(1, 0), (3, 5), (5, 9)]


def test_a_match_over_several_lines_has_the_number_of_its_first():
    assert [n for n, _ in numbered(re.compile("a\nb"), "x\na\nb\na\nb")] == [2, 4]
