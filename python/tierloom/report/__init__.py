"""Showing nouns and answers to people: tables for a terminal, pictures, one HTML page."""
