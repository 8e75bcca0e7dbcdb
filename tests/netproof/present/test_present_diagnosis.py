"""A diagnosis has the worst culprits whole."""

from __future__ import annotations

import dataclasses

from made_text import printed

from netproof.diagnosis.diagnosis import Diagnosis
from netproof.diagnosis.evidence import (
    Began,
    Culprit,
    Evidence,
    EvidenceSource,
    Place,
    PlaceKind,
    Sign,
    Since,
    Sure,
)
from netproof.present import diagnosis as shown
from netproof.present import documents


def culprit(number: int = 1, words: int = 60) -> Culprit:
    """Return a slow port with long sentences."""
    name = f"node{number}"
    place = Place(PlaceKind.NODE, name, (name,), "eth1")
    text = " ".join(["slower than others"] * words)
    seen = Evidence(EvidenceSource.PAIRS, Sign.SLOW, place, text, Sure.STATISTICAL, "by its error")
    return Culprit(
        place,
        (seen, seen, seen, seen),
        Sure.STATISTICAL,
        "at most 1 in 1,000 healthy runs accuse anyone",
        alternatives=(f"the cable {text}",),
        distinguish_by="a swap",
        red=(None,) * 7,
        cause="port slower than the others",
        headline=f"{name} (eth1): slower than the others",
        advice=f"look at {name}",
        rules_out="a swap of ports",
        since=Since(Began.NOT_KNOWN, "there is no store"),
    )


def diagnosis(*culprits: Culprit, sentences: int = 3) -> Diagnosis:
    many = tuple(f"sentence {number} of many words" for number in range(sentences))
    return Diagnosis("gige", culprits, 10, 3, 7, frozenset({EvidenceSource.PAIRS}), many, many, ())


def lines_of(found: Diagnosis, width: int = 100) -> list[str]:
    return printed(shown.blocks(found), width).splitlines()


def test_however_much_is_wrong_the_worst_are_whole_and_the_others_have_a_line():
    several = [culprit(number) for number in range(40)]
    lines = lines_of(diagnosis(*several, sentences=40), 80)
    assert lines[1].startswith("1 node0 (eth1): slower than the others")
    assert len([line for line in lines if line.startswith("how sure")]) == shown.WHOLE
    assert "Besides: 37 places" in lines
    assert lines[-1] == "35 more, which --format json has"
    assert max(map(len, lines)) <= 80


def test_what_is_inconclusive_has_a_next_step_where_nothing_else_was_found():
    healthy = dataclasses.replace(diagnosis(), red=0, passed=10)
    for not_known, where in (((), ""), (("a pair never met",), " in what was measured")):
        assert shown.headline(dataclasses.replace(healthy, not_known=not_known)) == (
            f"gige: nothing wrong was found{where}; 10 of 10 cases passed"
        )
    other = dataclasses.replace(
        diagnosis(), incomplete=("a reason",), next_steps=("measure again",)
    )
    assert "do  measure again" in lines_of(other)
    assert documents.plain(other)["next_steps"] == ["measure again"]
    assert lines_of(other)[0].startswith(
        "gige: nothing found, but not everything is known (a reason); "
    )
    found = dataclasses.replace(other, culprits=(culprit(),))
    assert not any("measure again" in line for line in lines_of(found))


def test_failures_without_a_cause_are_not_counted_as_places():
    other = dataclasses.replace(culprit(), cause="unexplained", narrowed=False)
    for found, words in (
        ((culprit(), other), "something is wrong at 1 place, and some failures are unexplained; "),
        ((other,), "something is wrong, and nothing explains it; "),
    ):
        assert shown.headline(diagnosis(*found)).startswith(f"gige: {words}")
    assert shown.facts(other)["how sure"][0].startswith("not known: ")


def test_one_culprit_has_its_evidence_certainty_remedy_and_alternatives():
    text = "\n".join(lines_of(diagnosis(culprit(words=2))))
    assert text.splitlines()[0] == (
        "gige: something is wrong at 1 place; 3 of 10 cases passed, 7 failed"
    )
    for line in (
        "seen       slower than others",
        "how sure   by statistics: at most 1 in 1,000",
        "since      not known: there is no store",
        "explains   7 failed cases",
        "or         the cable",
        "To distinguish them: a swap",
        "do         look at node1",
        "clears it  a swap of ports",
        "Ruled out: 3\nsentence 0",
        "Not known: 3\nsentence 0",
    ):
        assert line in text
