// Ctrl-K or Cmd-K: the palette. A combobox: the field keeps the focus, arrows move through the
// options (aria-activedescendant), Enter opens one. The list comes from the server by htmx.
const dialog = document.getElementById("palette");
const field = document.getElementById("palette-q");
const list = document.getElementById("palette-list");
const run = dialog.querySelector("[name=run]");

const options = () => [...list.querySelectorAll("[role=option]:not([aria-disabled])")];
const chosen = () => list.querySelector("[role=option][aria-selected=true]");

const choose = (option) => {
  chosen()?.setAttribute("aria-selected", "false");
  option?.setAttribute("aria-selected", "true");
  option?.scrollIntoView({ block: "nearest" });
  if (option) field.setAttribute("aria-activedescendant", option.id);
  else field.removeAttribute("aria-activedescendant");
};

const open = () => {
  if (dialog.open) return;
  run.value = /^\/(?:runs|steps)\/([0-9a-f]{32})/.exec(location.pathname)?.[1] ?? "";
  dialog.showModal();
  field.value = "";
  field.focus();
  htmx.trigger(field, "palette");
};

document.addEventListener("keydown", (event) => {
  if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return;
  event.preventDefault();
  if (dialog.open) dialog.close();
  else open();
});
for (const button of document.querySelectorAll("[data-palette]")) {
  button.hidden = false;
  button.addEventListener("click", open);
}
dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());

field.addEventListener("keydown", (event) => {
  const all = options();
  const at = all.indexOf(chosen());
  const next = { ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + 8, PageUp: at - 8 }[event.key];
  if (next !== undefined && all.length) {
    event.preventDefault();
    const isPage = event.key.startsWith("Page");
    choose(all[isPage ? Math.min(Math.max(next, 0), all.length - 1) : (next + all.length) % all.length]);
  } else if (event.key === "Enter") {
    event.preventDefault();
    const option = chosen();
    if (!option) return;
    dialog.close();
    option.click();
  }
});
list.addEventListener("pointermove", ({ target }) => {
  const option = target.closest("[role=option]:not([aria-disabled])");
  if (option && option !== chosen()) choose(option);
});
new MutationObserver(() => choose(chosen())).observe(list, { childList: true });
