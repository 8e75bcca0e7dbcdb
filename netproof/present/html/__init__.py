"""A session as pages: the verdict, the matrix, the curves."""
