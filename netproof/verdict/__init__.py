"""The verdict on a session: rulings, references, and stored results compared with."""
