"""What a network does under load: victims alone and beside aggressors, measured and judged."""
