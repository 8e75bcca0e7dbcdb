"""A session as pages that a reader opens: the verdict, the matrix, the curves."""
