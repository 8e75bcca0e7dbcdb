"""A night: the checks run, and their session is stored, judged, reported and sent to people.

``command`` goes through it; ``lock`` keeps nights apart; ``conditions`` finds what cannot be
measured, ``budget`` what waits for another night; ``measuring`` runs ReFrame; ``junit`` and
``summary`` write the result. cron calls ``netproof nightly``.
"""
