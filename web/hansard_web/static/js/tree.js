// Reading a run: plain links open in place, one key map for the tree, the selected step in the URL.
import { announce } from "./keys.js";

const main = () => document.getElementById("main");
const rows = () => [...document.querySelectorAll("#rows > [role=row]")];
const selected = () => document.querySelector("#rows > [aria-selected=true]");
const waterfall = document.querySelector("#scroller[data-window]") ? await import("./waterfall.js") : null;

// A link was rendered with the state of its time; the step and tab chosen since then stay chosen.
const current = (href, names) => {
  const url = new URL(href, location.href);
  const here = new URL(location.href).searchParams;
  for (const name of names) {
    if (here.get(name)) url.searchParams.set(name, here.get(name));
    else url.searchParams.delete(name);
  }
  return url;
};
const fragment = (url, part) => `${main().dataset.fragments}/${part}${url.search}`;
const inRun = (url) => main().dataset.path === url.pathname;

const openPane = (url) =>
  htmx.ajax("GET", fragment(url, "step"), { target: "#step", swap: "innerHTML", push: url.pathname + url.search });

export const select = (url) => {
  const key = url.searchParams.get("span");
  for (const row of rows()) {
    const is = row.id === `s-${key}`;
    row.setAttribute("aria-selected", is);
    row.tabIndex = is ? 0 : -1;
  }
  for (const row of document.querySelectorAll(".log tr[aria-selected]")) row.removeAttribute("aria-selected");
  document.querySelector(`.log a[href*="span=${CSS.escape(key ?? "")}"]`)?.closest("tr").setAttribute("aria-selected", "true");
  main().classList.toggle("run--alone", !key);
  return key ? openPane(url) : close();
};
const close = () => {
  const url = new URL(location.href);
  url.searchParams.delete("span");
  history.pushState({ htmx: true }, "", url);
  document.getElementById("step").replaceChildren();
  main().classList.add("run--alone");
  selected()?.setAttribute("aria-selected", "false");
};
const change = (url) => {
  history.pushState({ htmx: true }, "", url);
  return waterfall?.loadWindow(null, { address: fragment(url, "tree") });
};
const focusRow = (row) => {
  for (const other of rows()) other.tabIndex = other === row ? 0 : -1;
  row.focus({ preventScroll: true });
  row.scrollIntoView({ block: "nearest" });
};

document.addEventListener("click", (event) => {
  const link = event.target instanceof Element && event.target.closest("a[href]");
  if (event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey) return;
  if (link?.matches("[data-copy-from]")) {
    event.preventDefault();
    fetch(link.href).then((answer) => answer.text()).then((text) => navigator.clipboard.writeText(text)).then(() => announce("Copied"));
    return void link.closest("details")?.removeAttribute("open");
  }
  if (!main()?.dataset.path) return;
  const row = event.target instanceof Element && event.target.closest("#rows > [role=row]");
  if (!link) {
    if (row && !row.classList.contains("is-group")) select(current(row.querySelector(".tg-title").href, ["tab"]));
    return;
  }
  const url = new URL(link.href);
  if (!inRun(url)) return;
  if (link.matches(".tg-title") && row.classList.contains("is-group")) {
    event.preventDefault();
    change(current(row.querySelector(".tg-toggle").href, ["span", "tab"]));
  } else if (link.matches(".tg-title, [data-select]")) {
    event.preventDefault();
    select(link.matches("[data-select]") ? url : current(url, ["tab"]));
  } else if (link.matches("[data-tab]")) {
    event.preventDefault();
    openPane(url);
  } else if (link.matches("[data-step]")) {
    event.preventDefault();
    select(url);
  } else if (link.matches("[data-close]")) {
    event.preventDefault();
    close();
  } else if (waterfall && link.matches(".tg-toggle, [data-inplace]")) {
    event.preventDefault();
    change(current(url, ["span", "tab"]));
  } else if (link.matches("[data-keep]")) link.href = current(url, ["span", "tab"]).href;
});
document.addEventListener("dblclick", (event) => {
  const row = event.target instanceof Element && event.target.closest("#rows > [data-zoom]");
  if (row) change(current(row.dataset.zoom, ["span", "tab"]));
});
document.addEventListener("run:zoom", ({ detail }) => {
  const url = new URL(location.href);
  for (const [at, name] of ["from", "to"].entries())
    if (detail) url.searchParams.set(name, detail[at]);
    else url.searchParams.delete(name);
  change(url);
});
document.addEventListener("run-news", () => waterfall?.loadWindow(Number(document.querySelector("#rows > .tg-space")?.dataset.lines ?? 0)));

const jump = async (to, back) => {
  const url = new URL(location.href);
  url.searchParams.set("to", to);
  url.searchParams.set("back", back ? 1 : 0);
  const found = await (await fetch(fragment(url, "jump"))).json();
  if (found.line === null) return announce(to === "error" ? "No failed step" : "No match");
  waterfall.bringIntoView(found.line);
  if (!document.getElementById(`s-${found.key}`)) await waterfall.loadWindow(found.line - 80);
  const row = document.getElementById(`s-${found.key}`);
  await select(current(row.querySelector(".tg-title").href, ["tab"]));
  focusRow(row);
};
const here = (event) => event.target.closest?.("#rows > [role=row]") ?? selected() ?? rows()[0];
const step = (way) => (event) => {
  const all = rows();
  if (!all.length) return;
  const inGrid = document.activeElement?.closest?.("#rows");
  const at = all.indexOf(here(event));
  const next = inGrid || selected() ? all[at + way] : all[at];
  if (!next) return;
  event.preventDefault();
  focusRow(next);
  if (!document.querySelector(".run--alone") && !next.classList.contains("is-group")) select(current(next.querySelector(".tg-title").href, ["tab"]));
};
const fold = (open) => (event) => {
  const row = here(event);
  if (!row) return;
  event.preventDefault();
  const level = Number(row.ariaLevel);
  if (row.ariaExpanded === String(!open)) {
    const id = row.id;
    change(current(row.querySelector(".tg-toggle").href, ["span", "tab"]))?.then(() => focusRow(document.getElementById(id) ?? rows()[0]));
  } else if (open && row.ariaExpanded) row.nextElementSibling?.matches("[role=row]") && focusRow(row.nextElementSibling);
  else if (!open) {
    const parent = rows().slice(0, rows().indexOf(row)).findLast((one) => Number(one.ariaLevel) < level);
    if (parent) focusRow(parent);
  }
};
const foldAll = (value) => (event) => {
  event.preventDefault();
  const url = new URL(location.href);
  if (value) url.searchParams.set("shut", value);
  else url.searchParams.delete("shut");
  change(url);
};
const KEYS = {
  next: step(1), previous: step(-1), expand: fold(true), collapse: fold(false),
  "collapse-all": foldAll("all"), "expand-all": foldAll(""),
  open: (event) => { const row = here(event); if (row) { event.preventDefault(); row.querySelector(".tg-title").click(); } },
  close: (event) => { if (!document.querySelector(".run--alone")) { event.preventDefault(); close(); } },
  first: (event) => { event.preventDefault(); waterfall.bringIntoView(0); rows()[0] && focusRow(rows()[0]); },
  last: (event) => { event.preventDefault(); document.getElementById("scroller").scrollTop = 1e9; const row = rows().at(-1); if (row) focusRow(row); },
  "next-error": (event) => { event.preventDefault(); jump("error"); },
  "next-match": (event) => { event.preventDefault(); jump("match"); },
  "previous-match": (event) => { event.preventDefault(); jump("match", true); },
};
for (const [name, act] of Object.entries(KEYS))
  document.addEventListener(`key:${name}`, (event) => main()?.dataset.path && waterfall && act(event));
document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || document.activeElement?.matches("input, textarea, select")) return;
  if (event.key === "f") { event.preventDefault(); document.getElementById("find")?.focus(); }
  if ("123".includes(event.key)) document.querySelector(`[data-reading="${event.key}"]`)?.click();
});
const link = document.querySelector("[data-copy-link]");
if (link) {
  link.hidden = false;
  link.addEventListener("click", () => navigator.clipboard?.writeText(location.href).then(() => announce("Link copied")));
}
const chosen = selected();
if (chosen && waterfall) waterfall.bringIntoView(Number(chosen.dataset.line));
