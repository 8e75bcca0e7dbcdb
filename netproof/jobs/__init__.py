"""The program that runs inside a job: launch steps, read them, decide what to launch again."""
