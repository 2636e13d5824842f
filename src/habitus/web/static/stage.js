// One event: its clip, its heat map.

import { onKeys } from "./keys.js";

const part = (id) => document.getElementById(id);

function showHeat() {
  const heat = part("heat");
  if (!heat) return;
  heat.hidden = !heat.hidden;
  part("show-heat").setAttribute("aria-pressed", String(!heat.hidden));
  if (!heat.hidden) part("clip")?.pause();
}

function play(event) {
  const clip = part("clip");
  if (!clip || event.target.closest("button, a, summary, video")) return false;
  if (part("heat") && !part("heat").hidden) showHeat();
  if (clip.paused) clip.play(); else clip.pause();
  return true;
}

document.addEventListener("click", (event) => {
  if (event.target.closest("#show-heat")) showHeat();
});

onKeys({ h: showHeat, " ": play });

// Let the clip run by itself, unless motion is not wanted.
export function startClip() {
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) return;
  part("clip")?.play().catch(() => {});
}

export function click(selector) {
  const found = document.querySelector(selector);
  found?.click();
  return Boolean(found);
}
