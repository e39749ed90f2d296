# mypy: ignore-errors
import os

for _ in range(3000):
    os.mkdir("d" * 10)
    os.chdir("d" * 10)
with open("deep", "w") as file:
    file.write("deep")
os.chdir("/workspace")
print("built")
