"""Building blocks for every room of the broker; they import nothing of ours."""
