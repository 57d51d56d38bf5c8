"""What Xids and SXids mean, as text and as JSON."""
