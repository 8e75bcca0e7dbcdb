"""Running the checks; the only room that imports ReFrame.

- *jobs* (``jobs.py``, ``pairs.py``): one Slurm job for each partition and rank count, in which each
  launch in every environment is a job step; it launches again what is undecided;
- *checks* (``checks.py``, ``pairs.py``): one for each case, which judges what the job measured.
"""
