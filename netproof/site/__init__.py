"""A site: its configuration, the matrix that it asks for, its Slurm and its Spack environments."""
