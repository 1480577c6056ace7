// The native context, in place: a filter, a page or an item is chosen without losing one's place.
// Everything here is a plain link or form first; the address always says what is shown.
import { announce } from "./keys.js";

const TYPING_MS = 250;
const page = () => document.querySelector("[data-native]");
const rows = () => [...document.querySelectorAll(".receipts .rowlink")];
const row = (element) => element?.closest?.(".receipt");

const show = async (url, { replace = false } = {}) => {
  const address = url.pathname + url.search;
  await htmx.ajax("GET", `/fragments${address}`, {
    target: page(),
    swap: "innerMorph",
    [replace ? "replace" : "push"]: address,
  });
  announce(document.querySelector(".why-shown .dim")?.textContent ?? "");
  if (url.hash) document.querySelector(`${CSS.escape(url.hash.slice(1)) && url.hash} .rowlink`)?.focus({ preventScroll: true });
};

document.addEventListener("click", (event) => {
  const link = event.target instanceof Element && event.target.closest("a[data-inplace]");
  if (!link || !page()?.contains(link)) return;
  if (event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  show(new URL(link.href instanceof SVGAnimatedString ? link.href.baseVal : link.href, location.href));
});

// ---------------------------------------------------------------- the form
const addressOf = (form) => {
  const url = new URL(form.action);
  for (const [name, value] of new FormData(form)) if (value && !(value === "place" && name !== "q")) url.searchParams.set(name, value);
  return url;
};
let typed = 0;
document.addEventListener("input", ({ target }) => {
  const form = target.closest?.("form[data-inplace]");
  if (!form) return;
  clearTimeout(typed);
  typed = setTimeout(() => show(addressOf(form), { replace: true }), target.matches("select") ? 0 : TYPING_MS);
});
document.addEventListener("submit", (event) => {
  if (!event.target.matches("form[data-inplace]") || !page()) return;
  event.preventDefault();
  clearTimeout(typed);
  show(addressOf(event.target));
});

// ---------------------------------------------------------------- keys
const step = (way) => (event) => {
  const all = rows();
  if (!page() || !all.length) return;
  event.preventDefault();
  const here = row(document.activeElement) ?? document.querySelector(".receipt[aria-selected=true]");
  const at = here ? all.indexOf(here.querySelector(".rowlink")) : -1;
  const next = all[at < 0 ? (way > 0 ? 0 : all.length - 1) : Math.min(Math.max(at + way, 0), all.length - 1)];
  next.focus({ preventScroll: true });
  row(next).scrollIntoView({ block: "nearest" });
  if (document.querySelector(".inspect") && at >= 0) show(new URL(next.href));
};
const fold = (open) => (event) => {
  const score = row(document.activeElement)?.querySelector("details.score");
  if (!score || score.open === open) return;
  event.preventDefault();
  score.open = open;
};
const KEYS = {
  next: step(1), previous: step(-1), expand: fold(true), collapse: fold(false),
  close: (event) => {
    const close = page() && document.querySelector(".inspect [data-close]");
    if (!close) return;
    event.preventDefault();
    close.click();
  },
};
for (const [name, act] of Object.entries(KEYS)) document.addEventListener(`key:${name}`, act);
