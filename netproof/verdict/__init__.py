"""The verdict on a session: findings, references, and stored results compared with."""
