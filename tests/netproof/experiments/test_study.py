"""The criteria applied to the figures of the studies."""

from __future__ import annotations

import pytest

from netproof.experiments.literature import load


class TestE325Opteron:
    study = load("e325-opteron")

    def test_losses_at_the_peak_are_those_of_its_table(self):
        losses = {(p.where, p.network): round(100 * p.loss, 1) for p in self.study.peaks}
        assert losses == {
            ("between nodes", "Myrinet"): 0.2,
            ("between nodes", "GigE tunable"): 12.2,
            ("between nodes", "GigE untunable"): 21.9,
            ("between nodes", "Ethernet"): 1.1,
            ("in a node", "Myrinet"): -44.3,
            ("in a node", "GigE tunable"): 51.2,
            ("in a node", "GigE untunable"): 43.6,
            ("in a node", "Ethernet"): 45.5,
        }

    def test_tcp_on_tuned_gige_comes_to_the_line_rate_whichever_mbps_is_meant(self):
        peaks = next(
            p for p in self.study.peaks if (p.where, p.network) == ("between nodes", "GigE tunable")
        )
        decimal, binary = peaks.shares(peaks.tcp, self.study.mbps)
        assert decimal == pytest.approx(0.953, abs=5e-4)
        assert binary == pytest.approx(0.999, abs=5e-4)

    def test_no_share_of_a_line_rate_is_an_error_of_measurement(self):
        shares = [
            share
            for peaks in self.study.peaks
            for side in (peaks.mpi, peaks.tcp)
            for share in peaks.shares(side, self.study.mbps)
        ]
        assert len(shares) == 12
        assert max(shares) < 1.02

    def test_in_a_node_there_is_no_line_rate(self):
        inside = [p for p in self.study.peaks if p.where == "in a node"]
        assert all(p.shares(p.mpi, self.study.mbps) == () for p in inside)


class TestNetworkAdapters:
    adapters = load("network-adapters").adapters

    def test_has_the_eight_adapters_with_their_latencies_and_rates(self):
        table = {
            a.name: (a.latency_us, a.peak, *(a.rates[kib] for kib in (64, 16, 4, 1)))
            for a in self.adapters.columns
        }
        assert table == {
            "B'Com A": (59, 99, 89, 74, 31, 13),
            "B'Com B": (20, 90, 81, 84, 51, 22),
            "Intel A": (63, 107, 95, 66, 33, 12),
            "Intel B": (32, 113, 105, 82, 43, 22),
            "Intel C": (8.8, 116, 116, 99, 62, 45),
            "Intel D": (12, 110, 110, 82, 40, 31),
            "L5": (20, 102, 102, 80, 50, 26),
            "A'sso": (30, 74, 69, 55, 39, 16),
        }

    def test_only_mpi_over_tcp_has_a_share_of_the_line_rate(self):
        shares = {a.name: self.adapters.line_rate_share(a) for a in self.adapters.columns}
        assert {name for name, share in shares.items() if share} == {
            "B'Com A",
            "Intel A",
            "Intel B",
        }
        assert shares["B'Com A"] == pytest.approx(99 / 117.69, abs=1e-4)

    def test_every_adapter_has_a_share_of_the_125_mb_s_that_the_link_signals(self):
        assert max(a.peak for a in self.adapters.columns) == 116
        assert self.adapters.link_mbit_s == 1000


class TestNetPipeHowTo:
    study = load("netpipe-howto")

    def test_its_rows_show_that_mbps_is_of_two_to_the_twenty_bits(self):
        for row in self.study.run.rows:
            slow, fast = ((row.size * 8) / (row.seconds + d) for d in (0.5e-6, -0.5e-6))
            assert slow / 2**20 - 0.005 <= row.mbps <= fast / 2**20 + 0.005
        first = self.study.run.rows[0]
        assert first.size * 8 / (first.seconds + 0.5e-6) / 1e6 > first.mbps + 0.005

    def test_its_latency_by_the_rows_is_a_little_below_the_one_it_prints(self):
        assert self.study.run.landmarks().latency_us == pytest.approx(33)
        assert self.study.run.latency_printed_s == pytest.approx(35e-6)

    def test_its_best_throughput_is_a_share_of_the_line_rate_at_its_mtu(self):
        best = next(f for f in self.study.figures if f.unit == "Mbps")
        assert best.shares(self.study.mbps)[0] == pytest.approx(0.864, abs=5e-4)


def test_the_gige_tests_page_has_the_figures_of_its_text():
    figures = {f.what: (f.relation, f.value, f.unit) for f in load("gige-mpi-tests").figures}
    assert figures["Open-MX, nVidia NICs, no switch: latency"] == ("below", 9, "us")
    through = "Broadcom BCM5704 through a Baystack switch"
    assert figures[f"{through}: latency"] == ("equal", 23.6, "us")
    assert figures[f"{through}: largest bandwidth"] == ("equal", 118.2, "MB/s")
