// Live pictures: fetched when the camera has a new one, about once a second, and only while they
// can be seen. Those of a camera that has sent none yet are not asked for.

import { ask } from "./asking.js";
import { onNews } from "./news.js";
import { timeText } from "./times.js";

// Seconds after which a picture is looked for without any news.
const ANYWAY = 5;
// Seconds after which a picture does not show what happens now.
const OLD = 15;
const seen = new WeakMap();
const busy = new WeakSet();

const watcher = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    seen.set(target, isIntersecting);
    if (isIntersecting) renew(target);
  }
}, { rootMargin: "100px" });

async function renew(image) {
  if (busy.has(image) || !image.isConnected || !seen.get(image) || document.hidden) return;
  if (!("ready" in image.dataset) || image.closest(".playing")) return;
  busy.add(image);
  try {
    const answer = await ask(image.dataset.picture);
    if (answer.status === 200) {
      image.dataset.time = answer.headers.get("X-Time");
      await draw(image, await answer.blob());
      mark(image);
    }
  } catch { /* away: the next news tries again */ }
  busy.delete(image);
}

async function draw(image, blob) {
  const before = image.src;
  const address = URL.createObjectURL(blob);
  await new Promise((done) => {
    image.onload = image.onerror = done;
    image.src = address;
  });
  delete image.dataset.waiting;
  // A camera whose size was not known when the page was made: the view takes that of the picture.
  const view = image.closest(".view");
  if (view && !view.style.aspectRatio && image.naturalWidth) {
    view.style.aspectRatio = `${image.naturalWidth} / ${image.naturalHeight}`;
  }
  const placeholder = image.parentElement?.querySelector("[data-placeholder]");
  if (placeholder) placeholder.hidden = true;
  if (before.startsWith("blob:")) URL.revokeObjectURL(before);
}

// A picture that is not of now says of when it is, and is dimmed.
function mark(image) {
  const view = image.closest(".view");
  if (!view || !image.dataset.time || "undated" in image.dataset || view.matches(".playing")) return;
  const time = Number(image.dataset.time);
  const isOld = Date.now() / 1000 - time > OLD;
  view.classList.toggle("old", isOld);
  let said = view.querySelector(".taken");
  if (!said) {
    said = document.createElement("span");
    said.className = "taken";
    view.append(said);
  }
  said.hidden = !isOld;
  if (isOld) said.textContent = `picture of ${timeText(new Date(1000 * time), Date.now() / 1000 - time < 72000 ? "clock" : "second")}`;
}

const all = () => document.querySelectorAll("img[data-picture]");

export function watchPictures() {
  for (const image of all()) watcher.observe(image);
  onNews(["picture"], (news) => {
    for (const image of all()) {
      if (!image.dataset.picture.includes(`/${news.camera}/`)) continue;
      image.dataset.ready = "";
      renew(image);
    }
  });
  setInterval(() => all().forEach((image) => { renew(image); mark(image); }), ANYWAY * 1000);
  document.addEventListener("visibilitychange", () => all().forEach(renew));
}
