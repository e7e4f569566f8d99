"""Problems of a session or a document, as values. Nothing here raises on bad input or changes it."""
