// The page of an event.

import { onNews } from "./news.js";
import { onKeys } from "./keys.js";
import { click, startClip } from "./stage.js";

onKeys({
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
