"""What a network does under load: victims alone and alongside aggressors, measured and judged."""
