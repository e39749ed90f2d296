"""The journal: events of everything that happens, and the accounts that are kept of them."""
