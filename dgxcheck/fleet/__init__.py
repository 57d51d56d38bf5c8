"""The results of many machines judged together: what fails where, who is missing, and who differs from the others."""
