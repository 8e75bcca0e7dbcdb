"""What people read: terminal, pages, charts, documents; nothing is computed here."""
