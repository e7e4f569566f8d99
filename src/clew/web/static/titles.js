/** Long titles are cut to a few lines; a button shows all of the title of a page. */

const { one } = clewView;

function addButton(title) {
  if (title.scrollHeight <= title.clientHeight + 2) {
    return;
  }
  const button = document.createElement("button");
  button.type = "button";
  button.className = "show-title";
  button.setAttribute("aria-controls", "title");
  const update = () => {
    const isWhole = title.classList.contains("whole");
    button.textContent = isWhole ? "Show less" : "Show the whole title";
    button.setAttribute("aria-expanded", String(isWhole));
  };
  button.addEventListener("click", () => {
    title.classList.toggle("whole");
    update();
  });
  update();
  title.after(button);
}

export function initTitle() {
  // With the layout of the first frame, not before it.
  requestAnimationFrame(() => addButton(one("h1#title")));
}
