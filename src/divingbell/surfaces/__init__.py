"""What people and programs talk to. Surfaces translate; they decide nothing."""
