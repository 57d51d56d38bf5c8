"""What ``dgxcheck fabric`` prints."""
