"""A night: the checks run, their session is kept, judged and reported, and people are told.

``command`` goes through it; ``lock`` keeps nights apart, ``conditions`` says what cannot be
measured, ``budget`` what waits for another night, ``measuring`` runs ReFrame, ``junit`` and
``summary`` tell what came of it. ``netproof nightly`` is what cron calls.
"""
