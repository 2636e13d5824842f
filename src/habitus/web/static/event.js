// The page of an event.

import { toast } from "./main.js";
import { onNews } from "./news.js";
import { onKeys } from "./keys.js";
import { click, startClip } from "./stage.js";

// Hand the link on: to the programs of a phone, or to be pasted.
async function share() {
  const link = { title: document.querySelector(".why-large").textContent, url: `${location.origin}${location.pathname}` };
  const isPhone = matchMedia("(pointer: coarse)").matches;
  try {
    if (isPhone && navigator.share) return await navigator.share(link);
    await copy(link.url);
    toast("The link is copied. Whoever opens it needs a login here, unless there is no password.");
  } catch (error) {
    if (error.name !== "AbortError") toast(`Copy the link from here: ${link.url}`); // they changed their mind
  }
}

// Browsers give pages that are not encrypted no clipboard: there, the old way.
async function copy(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const field = document.createElement("textarea");
  field.value = text;
  document.body.append(field);
  field.select();
  const isDone = document.execCommand("copy");
  field.remove();
  if (!isDone) throw new Error("no clipboard");
}
document.getElementById("share").addEventListener("click", share);

onKeys({
  c: share,
  ArrowLeft: () => click("#newer"),
  ArrowRight: () => click("#older"),
  n: () => click('[data-verdict="normal"]'),
  u: () => click('[data-verdict="unusual"]'),
  z: () => click('[data-verdict="undo"]'),
});

// Somebody else reviewed it, or its clip is cut by now.
onNews(["event", "review", "again"], async (news, topic) => {
  if (topic !== "again" && news.event !== document.getElementById("stage").dataset.event) return;
  if (topic === "event" && document.getElementById("clip")) return;
  if (document.activeElement?.matches("#stage textarea")) return; // a note is being written
  await window.htmx.ajax("GET", location.pathname, { target: "#stage", select: "#stage", swap: "outerHTML" });
  startClip();
});

startClip();
