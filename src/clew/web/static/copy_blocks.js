/** A button on each code block, command and output of a message that copies its whole text. */

import { copyFor } from "./clipboard.js";
import { fetchPart, parseHtml, replaceMoreLink } from "./fragments.js";

const { one, all } = clewView;

/** What a block holds, for the label of its button and for the confirmation. */
function kindOf(block) {
  if (block.matches(".cmd")) {
    return "Command";
  }
  return block.matches(".o, .r > pre") ? "Output" : "Code";
}

/** The text of a block, with the parts that the page does not show yet. */
async function textOf(block) {
  const content = (one("code", block) || block).cloneNode(true);
  all(".copy-block", content).forEach((element) => element.remove());
  let link = one("a[data-more]", content);
  while (link) {
    const response = await fetchPart(link.getAttribute("href"));
    replaceMoreLink(link, parseHtml(await response.text()));
    link = one("a[data-more]", content);
  }
  return content.textContent;
}

function addButton(block) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Copy";
  button.setAttribute("aria-label", `Copy ${kindOf(block).toLowerCase()}`);
  button.addEventListener("click", () => copyFor(button, textOf(block), kindOf(block)));
  // Without a size of its own, it moves no text of the block.
  const holder = document.createElement("span");
  holder.className = "copy-block";
  holder.append(button);
  block.prepend(holder);
}

/** Add the buttons to the blocks of a message that have none. */
export function addCopyButtons(article) {
  all("pre:not(:has(> .copy-block))", article).forEach(addButton);
}
