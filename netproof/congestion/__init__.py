"""A network under load: victims alone and alongside aggressors, measured and judged."""
