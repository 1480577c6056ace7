// The inbox: keys that go to a decision (Enter then takes it), and clocks that run.
import { announce } from "./keys.js";

const EVERY_MS = 1000;

const go = (selector) => () => {
  const element = document.querySelector(selector);
  element?.focus();
  return Boolean(element);
};

const keys = {
  approve: go(".ask-approve"),
  revise: go("#note"),
  select: go(".ask-reject"),
  "next-error"() {
    const link = document.querySelector("a.ask-edit");
    link?.click();
    return Boolean(link);
  },
};

for (const [name, act] of Object.entries(keys))
  document.addEventListener(`key:${name}`, (event) => {
    if (!event.defaultPrevented && act()) {
      event.preventDefault();
      event.stopImmediatePropagation();
    }
  });

document.querySelector("[data-autofocus]")?.focus();

// After a decision: the reader is where it was taken, and hears how it stands; the head counts anew.
document.addEventListener("htmx:after:swap", () => {
  const place = document.querySelector("#refused, [data-autofocus], #h-ask");
  const main = document.getElementById("main");
  if (main && !main.dataset.isShown) {
    main.dataset.isShown = "1";
    if (place) place.focus();
    announce(document.querySelector(".ask-head .status")?.textContent ?? "");
    htmx.trigger(document.getElementById("waiting"), "look");
  }
});
document.addEventListener("htmx:sse:after:message", () =>
  htmx.trigger(document.getElementById("waiting"), "look"),
);
document.getElementById("main").dataset.isShown = "1";

// The same words as hansard_web/approving/words.py.
const left = (seconds) => {
  if (seconds <= 0) return "no time";
  if (seconds < 60) return `${seconds} s`;
  const two = (number) => String(number).padStart(2, "0");
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} m ${two(seconds % 60)} s`;
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return `${hours} h ${two(minutes % 60)} m`;
  return `${Math.floor(hours / 24)} d ${two(hours % 24)} h`;
};

setInterval(() => {
  for (const element of document.querySelectorAll("time[data-until]"))
    element.textContent = left(Math.floor((Date.parse(element.dateTime) - Date.now()) / 1000));
}, EVERY_MS);
