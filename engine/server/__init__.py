"""The OpenAI-compatible HTTP server. Start reading at app.py; worker.py runs the engine beside it."""
