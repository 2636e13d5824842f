// Review: one event after the other, by keys; every answer of the server is the next event.

import { settle, toast, csrf } from "./main.js";
import { ask } from "./asking.js";
import { onNews } from "./news.js";
import { onKeys } from "./keys.js";
import { click, startClip } from "./stage.js";

// Events that were reviewed in this tab, the last one at the end: what "undo" takes back.
const done = JSON.parse(sessionStorage.getItem("reviewed") ?? "[]");

function remember(event) {
  done.push(event);
  sessionStorage.setItem("reviewed", JSON.stringify(done.slice(-200)));
}

// A key does not wait for a page that renews itself: what was asked for last is shown.
let busy = false;
let asked = 0;
async function send(address, options, renewing = false) {
  if (busy) return;
  const own = ++asked;
  busy = !renewing;
  try {
    const answer = await ask(address, options);
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (own !== asked) return;
    const fresh = page.getElementById("review");
    if (!answer.ok || !fresh) {
      toast(page.querySelector(".error-page p:not(.code)")?.textContent ?? "that did not work", "bad");
      return;
    }
    document.getElementById("review").replaceWith(fresh);
    const stage = document.getElementById("stage");
    history.replaceState(null, "", stage ? `/review/${stage.dataset.event}${location.search}` : `/review${location.search}`);
    settle(fresh);
    startClip();
    scrollTo({ top: 0 });
  } catch {
    if (own === asked) toast("habitus does not answer", "bad");
  } finally {
    if (own === asked) busy = false;
  }
}

function camera() {
  return document.getElementById("camera").value;
}

function post(event, verdict) {
  const body = new URLSearchParams({ verdict, camera: camera() });
  return send(`/review/${event}`, { method: "POST", body, headers: { "X-CSRF-Token": csrf } });
}

async function say(verdict) {
  const stage = document.getElementById("stage");
  if (!stage || !stage.querySelector(`[data-verdict="${verdict}"]`)) return false;
  const event = stage.dataset.event;
  if (!busy) remember(event);
  await post(event, verdict);
  return true;
}

async function undo() {
  if (busy) return;
  const last = done.pop() ?? document.getElementById("review").dataset.last;
  sessionStorage.setItem("reviewed", JSON.stringify(done));
  if (last) await post(last, "undo");
}

function tooNormal() {
  const button = document.querySelector("#said [data-too]");
  if (!button || busy) return Boolean(button);
  const body = new URLSearchParams({ camera: camera() });
  send(`/review/${button.dataset.too}/too`, { method: "POST", body, headers: { "X-CSRF-Token": csrf } });
  return true;
}

document.addEventListener("submit", (event) => {
  if (event.target.querySelector("[data-too]")) {
    event.preventDefault();
    tooNormal();
    return;
  }
  const button = event.target.querySelector("[data-verdict], [data-undo]");
  if (!button || !event.target.closest("#review")) return;
  event.preventDefault();
  if (button.matches("[data-undo]")) undo();
  else if (button.dataset.verdict === "undo") post(document.getElementById("stage").dataset.event, "undo");
  else say(button.dataset.verdict);
});
document.addEventListener("click", (event) => {
  const link = event.target.closest("#review #newer, #review #older");
  if (!link || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  send(link.href);
});

onKeys({
  n: () => { say("normal"); },
  u: () => { say("unusual"); },
  z: () => { undo(); },
  a: tooNormal,
  ArrowRight: () => click("#older"),
  ArrowLeft: () => click("#newer"),
});

// Reviewed in another tab, or the first event has come.
onNews(["review", "event", "again"], (news, topic) => {
  const stage = document.getElementById("stage");
  if (busy) return;
  if (!stage) send("/review" + location.search, {}, true);
  else if (topic === "review" && news.event === stage.dataset.event) send(location.pathname + location.search, {}, true);
});

startClip();
