"""What is wrong with a partition, and where: the evidence of a judged session, put together."""
