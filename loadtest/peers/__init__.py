"""Webhooks to compare with: two in Go, one in FastAPI, and the floor that no Python under uvicorn gets below."""
