"""What is measured: units, cases, curves, launches, and the figures that come of them."""
