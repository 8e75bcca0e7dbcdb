"""The verdict on a session: rulings, references, and what the store has alongside."""
