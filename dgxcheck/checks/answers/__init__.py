"""What must answer and did not: the finding behind every check that skips for lack of an answer."""
