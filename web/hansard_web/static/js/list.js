// Keys of any list: rows are links with the class rowlink, in the order of the document.
const rows = () => [...document.querySelectorAll(".rowlink")];

const current = () => document.activeElement?.closest?.("tr, li, article")?.querySelector(".rowlink");

const move = (step) => {
  const all = rows();
  const at = all.indexOf(current());
  const next = at < 0 ? (step > 0 ? 0 : all.length - 1) : at + step;
  const row = all[Math.min(Math.max(next, 0), all.length - 1)];
  row?.focus();
  row?.scrollIntoView({ block: "nearest" });
  return Boolean(row);
};

const act = {
  next: () => move(1),
  previous: () => move(-1),
  open: () => current()?.click(),
  select() {
    const box = current()?.closest("tr")?.querySelector("input[type=checkbox]");
    box?.click();
    return Boolean(box);
  },
  close() {
    const bar = document.querySelector("[data-clear]");
    if (bar) location.assign(bar.dataset.clear);
    else current()?.blur();
    return Boolean(bar);
  },
};

for (const [name, run] of Object.entries(act))
  document.addEventListener(`key:${name}`, (event) => {
    if (!event.defaultPrevented && run() !== false) event.preventDefault();
  });
