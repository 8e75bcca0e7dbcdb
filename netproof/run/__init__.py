"""Running the checks; the only room that imports ReFrame."""
