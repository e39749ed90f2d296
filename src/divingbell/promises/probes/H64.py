# mypy: ignore-errors
# Events of every kind, each in its place among the text, without end.
import sys

from IPython.display import clear_output, display

while True:
    for number in range(50):
        print(number, file=sys.stderr)
        print(number)
    display(number)
    clear_output()
