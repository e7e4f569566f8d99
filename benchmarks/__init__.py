"""How fast and how small clew is, always next to a floor that is taken in the same run."""
