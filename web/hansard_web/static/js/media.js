// Recorded images: a click opens one in full, in a dialog. Esc closes it, the arrows go on.
let dialog = null;
let shown = null;

const make = (tag, name, parent) => {
  const one = document.createElement(tag);
  if (name) one.className = name;
  parent.append(one);
  return one;
};

const build = () => {
  dialog = make("dialog", "media-dialog", document.body);
  dialog.setAttribute("aria-label", "Recorded image");
  const head = make("div", "media-dialog-head", dialog);
  make("div", "media-facts", head);
  const close = make("button", "btn btn--quiet", head);
  close.type = "button";
  close.textContent = "Close";
  close.addEventListener("click", () => dialog.close());
  make("img", "", dialog);
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  dialog.addEventListener("close", () => {
    dialog.querySelector("img").removeAttribute("src");
    shown?.focus();
  });
  dialog.addEventListener("keydown", (event) => {
    event.stopPropagation(); // the page's own keys rest meanwhile
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!by) return;
    const all = [...document.querySelectorAll("[data-media]")];
    const next = all[all.indexOf(shown) + by];
    if (next) show(next);
  });
};

const show = (link) => {
  shown = link;
  const thumb = link.querySelector("img");
  const image = dialog.querySelector("img");
  image.src = link.getAttribute("href");
  image.alt = thumb.alt;
  const caption = link.closest("figure").querySelector("figcaption").cloneNode(true);
  const digest = caption.querySelector("[data-digest]");
  if (digest) digest.textContent = digest.title;
  dialog.querySelector(".media-facts").replaceChildren(...caption.childNodes);
};

document.addEventListener("click", (event) => {
  const link = event.target.closest?.("[data-media]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  event.preventDefault();
  if (!dialog) build();
  show(link);
  dialog.showModal();
});
