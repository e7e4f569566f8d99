// The copy button of a block with `$ ` prompts copies the commands, without the prompts and the output.
for (const code of document.querySelectorAll("pre > code")) {
  const lines = code.textContent.split("\n");
  if (lines[0].startsWith("$ ")) {
    code.dataset.copy = lines.filter((line) => line.startsWith("$ ")).map((line) => line.slice(2)).join("\n");
  }
}
