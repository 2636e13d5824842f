// Videos on the wall: of the tiles that can be seen, some at once; pictures stay where none comes.

import { onNews } from "./news.js";
import { mayRun, Player } from "./player.js";

// Videos that run at once, seconds from one question to the next, and until a camera that has none
// is asked again.
const MOST = 9;
const PACE = 1;
const AGAIN = 30;
const players = new Map();
const asked = new Map();
const seen = new Set();
const watcher = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    if (isIntersecting) seen.add(target); else seen.delete(target);
  }
  renew();
});

let isOn = mayRun() && localStorage.getItem("video") !== "off";

function stop(tile) {
  players.get(tile)?.stop();
  players.delete(tile);
}

function renew() {
  for (const tile of players.keys()) if (!isOn || document.hidden || !seen.has(tile)) stop(tile);
  if (isOn && !document.hidden) seen.forEach(start);
}

async function start(tile) {
  const isRunning = players.get(tile)?.isPlaying;
  if (isRunning || tile.dataset.kind === "recording" || !tile.querySelector("img")) return;
  if ([...players.values()].length >= MOST || Date.now() - (asked.get(tile) ?? 0) < 1000 * AGAIN) return;
  asked.set(tile, Date.now());
  const player = tile.player ??= new Player(tile.querySelector(".view"), tile.dataset.camera, { pace: PACE });
  players.set(tile, player);
  if (!(await player.play().catch(() => false))) players.delete(tile);
}

export function toggleVideo() {
  isOn = !isOn;
  localStorage.setItem("video", isOn ? "on" : "off");
  asked.clear();
  press();
  renew();
}

const button = document.getElementById("video");
const press = () => button?.setAttribute("aria-pressed", String(isOn));

export function startVideos() {
  button?.addEventListener("click", toggleVideo);
  press();
  document.querySelectorAll(".tile").forEach((tile) => watcher.observe(tile));
  document.addEventListener("visibilitychange", () => { asked.clear(); renew(); });
  // A camera that is back, or that has video now.
  onNews(["picture"], renew);
}
