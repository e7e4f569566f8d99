"""Bytes: JSON text, JSONL records with spans and repair, compression, atomic writes, path encodings."""
