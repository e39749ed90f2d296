"""Decisions about single calls: budgets, pinned definitions, approvals by a person."""
