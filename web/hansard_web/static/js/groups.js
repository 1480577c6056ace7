// Rows of several traces: opened to those traces, and kept in order while the list is live.
const members = (row) => {
  const found = [];
  const id = row.id.slice("group-".length);
  for (let next = row.nextElementSibling; next?.dataset.of === id; next = next.nextElementSibling)
    found.push(next);
  return found;
};

const show = (row, isOpen) => row.querySelector(".group-toggle").setAttribute("aria-expanded", String(isOpen));

const toggle = async (row) => {
  const open = members(row);
  for (const one of open) one.remove();
  if (!open.length) {
    const address = `/fragments/groups/${row.id.slice("group-".length)}${location.search}`;
    await htmx.ajax("GET", address, { source: row, target: row, swap: "afterend" });
  }
  show(row, members(row).length > 0);
};

document.addEventListener("click", (event) => {
  const link = event.target.closest?.(".group-toggle");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  toggle(link.closest("tr"));
});
document.addEventListener("keydown", (event) => {
  if (event.key !== " " || !event.target.matches?.(".group-toggle")) return;
  event.preventDefault();
  toggle(event.target.closest("tr"));
});

// A row that came again stands at the top; its traces stand below it or nowhere.
const tidy = () => {
  const seen = new Set();
  for (const row of document.querySelectorAll("#runs > tr.group")) {
    if (seen.has(row.id)) {
      for (const one of [...members(row), row]) one.remove();
      continue;
    }
    seen.add(row.id);
    const open = new Set(members(row));
    for (const id of row.dataset.runs.trim().split(/\s+/)) {
      const one = document.getElementById(`run-${id}`);
      if (one && !open.has(one)) one.remove();
    }
    show(row, open.size > 0);
  }
};

document.addEventListener("htmx:sse:after:message", tidy);
