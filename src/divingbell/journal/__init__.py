"""Events of everything that happens, and those who keep account of them."""
