"""A session as people read it: Markdown, terminal text, trees and tables. Pure functions that yield text."""
