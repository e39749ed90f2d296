"""Hybrid mode: chosen tools of upstream servers, offered to clients directly."""
