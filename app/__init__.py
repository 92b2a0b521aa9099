"""Vacancy: a fast, honest answer to "is there a free device for this pod right now?"."""
