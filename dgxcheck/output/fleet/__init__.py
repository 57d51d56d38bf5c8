"""What ``dgxcheck fleet`` prints."""
