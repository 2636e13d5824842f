// What every page has: times in the browser's zone, news, keys, the theme; then the page's own.

import { askPage, gathered } from "./asking.js";
import { onNews, startNews } from "./news.js";
import { startForms } from "./forms.js";
import { startKeys } from "./keys.js";
import { writeTimes } from "./times.js";

const PAGES = {
  wall: () => import("./wall.js"),
  camera: () => import("./camera.js"),
  edit: () => import("./edit.js"),
  zones: () => import("./zones.js"),
  events: () => import("./events.js"),
  event: () => import("./event.js"),
  review: () => import("./review.js"),
  settings: () => import("./restore.js"),
  account: () => import("./device.js"),
};

export const csrf = document.querySelector('meta[name="csrf"]').content;

document.body.addEventListener("htmx:configRequest", (event) => {
  event.detail.headers["X-CSRF-Token"] = csrf;
});
document.body.addEventListener("htmx:afterSettle", () => settle());
document.body.addEventListener("htmx:responseError", (event) => {
  toast(problemOf(event.detail.xhr.responseText) || "that did not work", "bad");
});
document.body.addEventListener("htmx:sendError", () => toast("habitus does not answer", "bad"));

function problemOf(text) {
  try { return JSON.parse(text).detail; } catch { /* a page */ }
  const page = new DOMParser().parseFromString(text, "text/html");
  return page.querySelector(".error-page p:not(.code)")?.textContent ?? "";
}

// Show a line for a while; the oldest goes where there are many.
const MOST_TOASTS = 4;
export function toast(text, kind = "") {
  const said = document.createElement("p");
  said.className = `notice ${kind}`;
  said.textContent = text;
  const toasts = document.getElementById("toasts");
  toasts.append(said);
  while (toasts.children.length > MOST_TOASTS) toasts.firstElementChild.remove();
  setTimeout(() => said.remove(), 8000);
}

// What has to be done with new parts of a page.
export function settle(root = document) {
  writeTimes(root);
  for (const view of root.querySelectorAll("[data-ratio]")) view.style.aspectRatio = view.dataset.ratio;
}

document.addEventListener("change", ({ target }) => {
  if (target.matches("select[data-submit]")) target.form.requestSubmit();
});
document.addEventListener("submit", (event) => {
  const { confirm: question } = event.target.dataset;
  if (question && !confirm(question)) event.preventDefault();
}, true);
startForms((reason) => toast(reason, "bad"));
document.addEventListener("page", () => settle());

const theme = document.getElementById("theme");
function switchTheme() {
  const root = document.documentElement;
  const dark = root.dataset.theme
    ? root.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  localStorage.setItem("theme", root.dataset.theme);
  document.dispatchEvent(new CustomEvent("theme"));
}
theme?.addEventListener("click", switchTheme);

const toReview = document.getElementById("to-review");
async function countAgain() {
  const page = await askPage("/parts/to-review");
  if (!page) return;
  const n = Number(page.body.textContent);
  toReview.querySelector("[data-count]").textContent = n < 100 ? n : "99+";
  toReview.hidden = n === 0;
}
if (toReview) onNews(["event", "review", "again"], gathered(countAgain));

onNews(["notice"], (news) => toast(news.text, "bad"));

settle();
setInterval(() => writeTimes(), 20000);
startKeys({ t: switchTheme });
startNews();
Promise.resolve(PAGES[document.body.dataset.page]?.()).then(() => { document.body.dataset.ready = ""; });
