def add_options(p): p.add_argument("--model")
