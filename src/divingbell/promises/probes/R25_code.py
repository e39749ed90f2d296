# mypy: ignore-errors
def f():
    pass


f.__code__ = f.__code__.replace(co_code=b"\x64\xff" * 2000, co_stacksize=0, co_consts=())
f()
