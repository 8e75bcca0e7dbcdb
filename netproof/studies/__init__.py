"""Figures of earlier studies."""
