"""Rehearsing a workflow: the real engine, scripted answers, fake time. No store, model, server or process."""
