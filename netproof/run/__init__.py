"""Running the checks; the only room that imports ReFrame.

- *jobs* (``jobs.py``, ``pairs.py``): one Slurm job for each partition and rank count, in which each
  launch in every environment is a job step; it launches again what is undecided;
- *launches* (``results.py``): for each job and environment, the records of what was measured;
- *checks* (``checks.py``): for each function: is it complete, and within its references;
- *curves*: for each job and environment, the criteria along each curve;
- *configurations*: for each rank count, the criteria that compare partitions and environments.
"""
