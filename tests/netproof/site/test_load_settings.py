"""Settings of a site for a network under load."""

from __future__ import annotations

import pytest

from netproof.errors import NetproofError
from netproof.site.partition import LoadSettings


def test_by_default_nothing_is_asserted():
    settings = LoadSettings.of_site({})
    assert settings.most is settings.most_99th is None
    assert settings.repetitions >= 100
    assert LoadSettings.of_site({"most": 1.5}).most == 1.5


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"mots": 2.0}, "mots: unknown here; did you mean 'most'"),
        ({"most": 1.0}, "most: found 1.0, expected how many times"),
        ({"most": "2"}, "most: found '2', expected how many times"),
        ({"repetitions": 1}, "repetitions: found 1, expected how often"),
        ({"bytes": 0}, "bytes: found 0, expected message of an aggressor"),
        ({"arguments": ["-sync off"]}, "arguments.0: found '-sync off', expected"),
    ],
)
def test_what_cannot_be_is_refused_with_its_key(values: dict, said: str):
    with pytest.raises(NetproofError) as error:
        LoadSettings.of_site(values)
    assert str(error.value).startswith(said)
