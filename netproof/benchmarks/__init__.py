"""The benchmarks: what each can measure, and how its output is read."""
