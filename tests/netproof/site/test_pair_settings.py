"""Settings of a site for rounds of pairs."""

from __future__ import annotations

import pytest

from netproof.errors import NetproofError
from netproof.site.partition import PairQuantity, PairSettings


def test_defaults_judge_both_quantities_with_all_pairs_at_once():
    settings = PairSettings.of_site({})
    assert settings.quantities == (PairQuantity.LATENCY, PairQuantity.RATE)
    assert settings.together == 0


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"slow": 0.1}, "slow: unknown here; did you mean 'slower'"),
        ({"slower": 1.5}, "slower: found 1.5, expected share"),
        ({"slower": "0.1"}, "slower: found '0.1', expected share"),
        ({"rounds": 1}, "rounds: found 1, expected 2 or more, or 0"),
        ({"quantities": ["speed"]}, "quantities.0: found 'speed', expected"),
        ({"quantities": ["rate both ways"]}, "quantities.0: found 'rate both ways', expected"),
        ({"quantities": []}, "quantities: found"),
        ({"arguments": ["-iter 3"]}, "arguments.0: found '-iter 3', expected"),
        ({"environments": "mpich"}, "environments: found 'mpich', expected environments"),
        ({"environments": ["a b"]}, "environments.0: found 'a b', expected"),
    ],
)
def test_what_cannot_be_is_refused_with_its_key(values: dict, said: str):
    with pytest.raises(NetproofError) as error:
        PairSettings.of_site(values)
    assert str(error.value).startswith(said)
