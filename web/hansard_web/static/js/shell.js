// What every page has: copy buttons, the toast for failed requests, the live stream's second try.
import { copy, toast } from "./keys.js";

const RETRY_MS = 2000;
const LOOK_EVERY_MS = 5000;

document.addEventListener("click", (event) => {
  const button = event.target instanceof Element && event.target.closest("[data-copy], [data-copy-message]");
  if (!button) return;
  const source = button.dataset.copy
    ? document.getElementById(button.dataset.copy)
    : button.parentElement.querySelector("pre");
  // Of a message what was said is copied, however it is shown.
  const said = "copyMessage" in button.dataset && button.closest(".msg").querySelectorAll(".msg-source");
  const text = said ? [...said].map((one) => one.textContent).join("\n\n") : (source.dataset.copyText ?? source.textContent);
  copy(text).then((isDone) => {
    if (!isDone) return;
    const icon = button.querySelector("use");
    icon?.setAttribute("href", "#i-check");
    setTimeout(() => icon?.setAttribute("href", "#i-copy"), 1200);
  });
});

// What an ellipsis cuts is read whole where the pointer rests on it. A row's link lies over all of
// its cells: it takes the words of the cell below the pointer.
const isCut = (one) => one.scrollWidth > one.clientWidth && getComputedStyle(one).textOverflow === "ellipsis";
const showCut = ({ target, clientX, clientY }) => {
  const link = target instanceof Element && target.matches(".rowlink") ? target : null;
  const below = link ? document.elementsFromPoint(clientX, clientY).filter((one) => one !== link) : [target];
  const found = below.find((one) => one instanceof HTMLElement && isCut(one));
  if (link) {
    link.dataset.own ??= link.title;
    link.title = found ? found.title || found.innerText.trim() : link.dataset.own;
  } else if (found && !found.closest("[title]")) found.title = found.innerText.trim();
};
for (const name of ["pointerover", "pointermove"]) document.addEventListener(name, showCut, { passive: true });

// What answers are shown as: at once for what is on the page, and remembered for all others.
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (!form.matches("[data-messages]") || !event.submitter) return;
  event.preventDefault();
  const { value } = event.submitter;
  for (const button of document.querySelectorAll("[data-messages] button")) button.ariaPressed = button.value === value;
  for (const box of document.querySelectorAll(".msg-as input"))
    box.checked = value === "markdown" && box.closest(".msg").dataset.speaker === "assistant";
  fetch(form.action, { method: "POST", body: new URLSearchParams(new FormData(form, event.submitter)), redirect: "manual" })
    .catch(() => toast("Hansard does not answer: the choice holds on this page only."));
});

const isStream = (target) => target instanceof Element && target.hasAttribute("hx-sse:connect");

for (const name of ["htmx:error", "htmx:response:error"])
  document.addEventListener(name, (event) => {
    if (isStream(event.target)) {
      // htmx reconnects only a stream that once was open: the first connect is tried again here.
      setTimeout(() => htmx.trigger(event.target, "live:retry"), RETRY_MS);
      return;
    }
    // Nobody asked for what is looked up by itself.
    if (event.target instanceof Element && event.target.hasAttribute("data-quiet")) return;
    const status = event.detail?.ctx?.response?.status;
    if (status === undefined) toast("Hansard does not answer. Is it still running?");
    else if (status >= 500) toast(`Hansard could not do that (${status}). The log has the reason.`);
  });

// How many approvals wait, in the head of every page that is looked at.
const look = () => {
  const badge = document.getElementById("waiting");
  if (badge && !document.hidden) htmx.trigger(badge, "look");
};
setInterval(look, LOOK_EVERY_MS);
document.addEventListener("visibilitychange", look);
