// Going from change to change: n and p, or the two buttons. The place is counted, never stored.
import { announce } from "./keys.js";

const changes = () =>
  [...document.querySelectorAll("[data-change]")].filter((one) => one.checkVisibility());
let at = -1;

const say = (all) => {
  const text = document.querySelector("[data-change-say]");
  if (!text) return;
  if (!all.length) text.textContent = "no change";
  else if (at < 0) text.textContent = `${all.length} change${all.length === 1 ? "" : "s"}`;
  else text.textContent = `change ${at + 1} of ${all.length}`;
};

const go = (by) => {
  const all = changes();
  if (!all.length) return;
  at = at < 0 ? (by > 0 ? 0 : all.length - 1) : (at + by + all.length) % all.length;
  for (const one of document.querySelectorAll(".is-here")) one.classList.remove("is-here");
  const here = all[at];
  here.classList.add("is-here");
  if (!here.hasAttribute("tabindex")) here.tabIndex = -1;
  here.focus({ preventScroll: true });
  here.scrollIntoView({ block: "center" });
  say(all);
  announce(document.querySelector("[data-change-say]")?.textContent ?? "");
};

document.addEventListener("key:next-match", (event) => { event.preventDefault(); go(1); });
document.addEventListener("key:previous-match", (event) => { event.preventDefault(); go(-1); });
document.addEventListener("click", (event) => {
  const link = event.target instanceof Element && event.target.closest("[data-change-go]");
  if (!link) return;
  event.preventDefault();
  go(link.dataset.changeGo === "next" ? 1 : -1);
});
say(changes());
