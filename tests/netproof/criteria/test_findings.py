"""Several findings of one kind are reported in one sentence, on the one that matters most."""

from __future__ import annotations

from netproof.criteria.findings import Finding, Level, folded


def finding(criterion: str, level: Level, size: int | None, value: float, bound: float) -> Finding:
    return Finding(criterion, level, "a", f"{value} at {size}", size, value, bound)


def test_the_one_furthest_from_its_bound_stands_for_all_and_names_their_sizes():
    findings = folded(
        [
            finding("envelope", Level.FAIL, 4, 12.0, 10),
            finding("dropout", Level.WARN, 64, 0.4, 0.5),
            finding("envelope", Level.FAIL, 8, 172.0, 10),
            finding("dropout", Level.WARN, 128, 0.13, 0.5),
            finding("envelope", Level.WARN, 16, 5.0, 4),
        ]
    )
    assert [one.reason for one in findings] == [
        "172.0 at 8. Likewise at 2 sizes in all: 4, 8 bytes",
        "0.13 at 128. Likewise at 2 sizes in all: 64, 128 bytes",
        "5.0 at 16",
    ]


def test_what_is_of_a_whole_curve_stands_for_itself():
    several = [finding("score", Level.WARN, None, value, 0.5) for value in (0.4, 0.1)]
    assert folded(several) == several
    assert folded([]) == []


def test_a_value_without_a_bound_or_of_nothing_is_reported_where_nothing_is_further_off():
    several = [
        finding("loss", Level.WARN, 4, -0.1, 0.1),
        finding("loss", Level.WARN, 8, 0.0, 0.1),
        finding("loss", Level.WARN, 16, 0.3, 0.1),
    ]
    (one,) = folded(several)
    assert one.reason == "0.3 at 16. Likewise at 3 sizes in all: 4, 8, 16 bytes"
