"""Diagnosis of a partition: what is wrong and where, from the evidence of a judged session."""
