"""Facts that follow from the records: pure functions over the model."""
