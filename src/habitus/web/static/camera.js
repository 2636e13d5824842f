// One camera: its live picture with arrows and heat, what it does now, and its timeline.

import { settle } from "./main.js";
import { unusualOf } from "./scale.js";
import { ask, askPage, gathered } from "./asking.js";
import { onNews } from "./news.js";
import { onKeys } from "./keys.js";
import { showLatest } from "./latest.js";
import { behaviourChip } from "./behaviours.js";
import { drawArrows, drawHeat, penOver } from "./overlay.js";
import { watchPictures } from "./pictures.js";
import { startRecent } from "./recent.js";
import { toggleScreen } from "./screen.js";
import { Timeline } from "./timeline.js";

const root = document.getElementById("camera");
const camera = root.dataset.camera;
const part = (id) => document.getElementById(id);
const shown = { arrows: false, heat: true };
Object.assign(shown, JSON.parse(localStorage.getItem("overlay") ?? "{}"));

// Arrows and heat, in pixels of the camera.
let latest = null;
function draw() {
  const canvas = part("overlay");
  const pen = canvas && penOver(canvas, latest?.width, latest?.height);
  if (!pen || player?.live === false) return; // they are of now
  if (shown.heat) drawHeat(pen, latest.heat ?? []);
  if (shown.arrows) drawArrows(pen, latest.arrows ?? []);
}

async function look() {
  if (document.hidden || !part("overlay") || !(shown.arrows || shown.heat)) return;
  try {
    const answer = await ask(`/api/cameras/${camera}/now`);
    if (answer.ok) latest = await answer.json();
  } catch { return; }
  // A video is some moments late.
  const late = latest.time && player?.time ? latest.time - player.time : 0;
  setTimeout(draw, 1000 * Math.max(0, Math.min(late, 5)));
}

function toggle(name) {
  shown[name] = !shown[name];
  localStorage.setItem("overlay", JSON.stringify(shown));
  press();
  draw();
  look();
}
function press() {
  for (const button of document.querySelectorAll("[data-toggle]")) {
    button.setAttribute("aria-pressed", String(shown[button.dataset.toggle]));
  }
}
for (const button of document.querySelectorAll("[data-toggle]")) {
  button.addEventListener("click", () => toggle(button.dataset.toggle));
}

function tellNow(news) {
  if (!part("state").matches(".state-watching")) return;
  const now = part("now");
  if (news.behaviour) now.replaceChildren(behaviourChip(news.behaviour, news.names?.[news.behaviour]));
  const expected = news.expected ?? [];
  if (expected.length) {
    const best = expected.indexOf(Math.max(...expected));
    part("next").replaceChildren(behaviourChip(best + 1, news.names?.[best + 1]), `, ${Math.round(100 * expected[best])} %`);
  }
  if (news.normality !== null && news.normality !== undefined) {
    const level = news.threshold === null ? "" : `; alarms from ${unusualOf(news.threshold)}`;
    part("usual").textContent = `${unusualOf(news.normality)} of 100${level}`;
  }
}

// Take parts of the page anew.
async function renew(...ids) {
  const page = await askPage(location.pathname);
  if (!page) return;
  for (const id of ids) {
    const fresh = page.getElementById(id);
    if (fresh) part(id).replaceWith(fresh);
  }
  settle();
}

const timeline = new Timeline(part("timeline"), camera, part("readout"));
const player = part("recent") ? startRecent(camera, timeline, Number(part("timeline").dataset.at)) : null;

const mine = (listener) => (news) => { if (news.camera === camera) listener(news); };
onNews(["picture"], mine(look));
onNews(["judged"], mine((news) => { tellNow(news); timeline.add(news); }));
onNews(["event", "review"], mine(gathered(() => { timeline.renew(); renew("today"); })));
const renewState = () => renew("state", "state-words", "now", "next", "usual");
onNews(["camera"], mine(gathered(renewState)));
const renewLearning = gathered(() => renew("learning"), 2000);
const renewModel = gathered(() => renew("learning", "behaviours", "learnt"));
onNews(["learning"], mine((news) => (news.stage === "ended" ? renewModel() : renewLearning())));
// Until there is a model, how much footage there is: minutes as they are written, and the seconds
// since.
let seconds = 0;
function countFirst(by = 0) {
  const bar = part("first-progress");
  if (!bar) return;
  seconds = Math.max(seconds, bar.value) + by;
  bar.value = seconds;
}
onNews(["judged"], mine(() => { if (part("state").matches(".state-learning")) countFirst(1); }));
setInterval(async () => {
  if (!part("first-progress") || document.hidden) return;
  await renew("learning");
  countFirst();
}, 10_000);
onNews(["again"], gathered(() => { renewState(); renewModel(); timeline.renew(); }));

const toScreen = () => toggleScreen(part("view").closest("figure"));
part("to-screen").addEventListener("click", toScreen);
onKeys({ a: () => toggle("arrows"), h: () => toggle("heat"), f: toScreen });
new ResizeObserver(draw).observe(part("view"));
press();
showLatest();
watchPictures();
look();
