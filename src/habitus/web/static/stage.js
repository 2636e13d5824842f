// One event: its clip, and where it was unusual, drawn over the clip in time with it.

import { onKeys } from "./keys.js";
import { frameOf, watchFrames } from "./frames.js";
import { drawBoxes, drawHeat, drawTrack, followed, penOver } from "./overlay.js";

// Seconds of a document, and nats of the hottest cell.
const DOCUMENT = 1;
const HOTTEST = 5;
const SPEEDS = [0.25, 0.5, 1, 2, 4];
const part = (id) => document.getElementById(id);
const shown = { marks: true, heat: false };

// What the stage has to be drawn, by the seconds from the start of the event.
function staged() {
  const { track, lead, peak, width, height } = part("stage").dataset;
  const points = JSON.parse(track);
  const clip = part("clip");
  const at = clip ? clip.currentTime - Number(lead) : Number(peak); // a picture is of the strongest moment
  const now = clip ? points.findLast((point) => point.at <= at + 0.001 && at < point.at + 1.5 * DOCUMENT) : nearest(points, at);
  return { points, now, at, width: Number(width), height: Number(height) };
}

const nearest = (points, at) => points.toSorted((one, other) => Math.abs(one.at - at) - Math.abs(other.at - at))[0];

function draw() {
  if (!part("marks")) return;
  const { points, now, at, width, height } = staged();
  const heat = penOver(part("heat"), width, height);
  if (heat && now) drawHeat(heat, heatOf(now));
  const marks = penOver(part("marks"), width, height);
  part("stage").dataset.drawn = now ? String(now.at) : "";
  if (!marks || !now) return;
  drawTrack(marks, followed(points, Number(part("stage").dataset.peak)).filter((point) => point.at <= at).map(({ centre }) => centre));
  drawBoxes(marks, now.boxes);
}

// Of an event whose cells are not known, its boxes glow.
function heatOf({ heat, boxes }) {
  const cells = heat.length ? heat : boxes.map((box) => [...box, HOTTEST]);
  return cells.map(([left, top, right, bottom, nats]) => [left, top, right - left, bottom - top, Math.min(1, nats / HOTTEST)]);
}

function press() {
  for (const [name, isShown] of Object.entries(shown)) {
    if (!part(name)) continue;
    part(name).hidden = !isShown;
    part(`show-${name}`).setAttribute("aria-pressed", String(isShown));
  }
  draw();
}

function toggle(name) {
  if (!part(name)) return false;
  shown[name] = !shown[name];
  press();
  return true;
}

function play(event) {
  const clip = part("clip");
  if (!clip || event.target.closest("button, a, summary, video")) return false;
  if (clip.paused) clip.play(); else clip.pause();
  return true;
}

function step(by) {
  const clip = part("clip");
  if (!clip) return false;
  clip.pause();
  clip.currentTime = Math.max(0, Math.min(clip.duration || Infinity, clip.currentTime + by * frameOf(clip)));
  return true;
}

function setSpeed(speed) {
  const clip = part("clip");
  if (!clip) return false;
  clip.playbackRate = speed;
  part("speed").value = String(speed);
  return true;
}
const faster = (by) => {
  const here = SPEEDS.indexOf(part("clip")?.playbackRate);
  return setSpeed(SPEEDS[Math.max(0, Math.min(SPEEDS.length - 1, (here < 0 ? 2 : here) + by))]);
};

document.addEventListener("click", ({ target }) => {
  if (target.closest("#show-heat")) toggle("heat");
  if (target.closest("#show-marks")) toggle("marks");
  const stepping = target.closest("[data-step]");
  if (stepping) step(Number(stepping.dataset.step));
});
document.addEventListener("change", ({ target }) => {
  if (target.id === "speed") setSpeed(Number(target.value));
});

onKeys({
  h: () => toggle("heat"),
  b: () => toggle("marks"),
  ",": () => step(-1),
  ".": () => step(1),
  "[": () => faster(-1),
  "]": () => faster(1),
  " ": play,
});
addEventListener("resize", draw);

// Draw with each frame of the clip.
function follow(clip) {
  if (!clip.isConnected) return;
  draw();
  if (clip.requestVideoFrameCallback) clip.requestVideoFrameCallback(() => follow(clip));
}

// Let the clip run by itself, unless motion is not wanted.
export function startClip() {
  const clip = part("clip");
  press();
  if (!clip) return;
  watchFrames(clip);
  const hold = () => clip.parentElement.classList.toggle("paused", clip.paused);
  for (const news of ["play", "pause"]) clip.addEventListener(news, hold);
  hold();
  for (const news of ["seeked", "loadeddata", "timeupdate"]) clip.addEventListener(news, draw);
  follow(clip);
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) return;
  clip.play().catch(() => {});
}

export function click(selector) {
  const found = document.querySelector(selector);
  found?.click();
  return Boolean(found);
}
