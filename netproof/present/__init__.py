"""Output for people: terminal, pages, charts, documents; nothing is computed here."""
