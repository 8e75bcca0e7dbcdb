"""A report has the diagnosis, the maps of pairs and the table of nodes."""

from __future__ import annotations

import re

import pytest
from made_sessions import in_job, judged_case, rounds, session_of, subject

from netproof.present.html.page import pages
from netproof.present.html.report import Report


def text(page: str) -> str:
    without = re.sub("<script.*?</script>", "", page, flags=re.DOTALL)
    return " ".join(re.sub("<[^>]*>", " ", without).split())


@pytest.mark.slow
def test_the_page_begins_with_what_is_wrong_and_has_the_maps_and_what_is_known_of_each_node():
    session = session_of(
        cases=[judged_case(subject("carrier"), "slow at 1024")],
        of_pairs=[rounds(gige_3=2.0)],
        described=in_job("differ"),
    )
    page = dict(pages(Report(session)))["index.html"]
    begins = [page.index(f'id="{name}"') for name in ("verdict", "nodes", "matrix")]
    verdict, nodes = page[begins[0] : begins[1]], page[begins[1] : begins[2]]
    words = text(verdict)
    assert "gige: something is wrong at 3 places" in words
    assert words.index("the link went down and came back") < words.index("What failed")
    assert nodes.count('class="chart"') == 2
    rows = {row[0]: row[1:] for row in _rows(nodes) if len(row) == 4 and row[0] != "node"}
    assert set(rows) == {"gige-1", "gige-2", "gige-3", "gige-4"}
    state, _, differs = rows["gige-2"]
    assert (state, differs) == ("mpich: cleared", "mtu: 1400, others 1500")
    (interface,) = (row for row in _rows(nodes) if row[1:3] == ["gige-2", "eth1"])
    assert interface[5:] == ["0", "1", "2", "64 (0.15 %)"]
    assert rows["gige-3"][0] == "mpich: accused"
    assert "50.2 % of the others" in rows["gige-3"][1]


def _rows(part: str) -> list[list[str]]:
    found = re.findall("<tr>(.*?)(?=<tr>|</tr>|</tbody>)", part, re.DOTALL)
    return [[text(f"<{cell}") for cell in re.split("<(?=t[hd])", row)[1:]] for row in found]
