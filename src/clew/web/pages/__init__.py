"""The pages, one module each. A view takes a PageRequest and returns a response."""
