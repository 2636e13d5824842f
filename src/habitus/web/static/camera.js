// One camera: its live picture with arrows and heat, what it does now, and its timeline.

import { settle } from "./main.js";
import { ask, askPage, gathered } from "./asking.js";
import { onNews } from "./news.js";
import { onKeys } from "./keys.js";
import { showLatest } from "./latest.js";
import { behaviourChip } from "./behaviours.js";
import { watchPictures } from "./pictures.js";
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
  if (!canvas) return;
  const view = part("view").getBoundingClientRect();
  const ratio = devicePixelRatio;
  canvas.width = view.width * ratio;
  canvas.height = view.height * ratio;
  if (!latest?.width) return;
  const scale = Math.min(canvas.width / latest.width, canvas.height / latest.height);
  const pen = canvas.getContext("2d");
  pen.translate((canvas.width - scale * latest.width) / 2, (canvas.height - scale * latest.height) / 2);
  pen.scale(scale, scale);
  if (shown.heat) drawHeat(pen, latest.heat ?? []);
  if (shown.arrows) drawArrows(pen, latest.arrows ?? [], 1.5 * ratio / scale);
}

function drawHeat(pen, heat) {
  for (const [x, y, width, height, strength] of heat) {
    const radius = 0.75 * Math.max(width, height);
    const [middleX, middleY] = [x + width / 2, y + height / 2];
    const glow = pen.createRadialGradient(middleX, middleY, 0, middleX, middleY, radius);
    glow.addColorStop(0, `rgb(224 0 122 / ${0.7 * strength})`);
    glow.addColorStop(1, "rgb(224 0 122 / 0)");
    pen.fillStyle = glow;
    pen.fillRect(middleX - radius, middleY - radius, 2 * radius, 2 * radius);
  }
}

function drawArrows(pen, arrows, width) {
  for (const [colour, line] of [["rgb(0 0 0 / 60%)", 2.2 * width], ["#f0e442", width]]) {
    pen.strokeStyle = colour;
    pen.lineWidth = line;
    pen.lineCap = pen.lineJoin = "round";
    pen.beginPath();
    for (const [x, y, tipX, tipY] of arrows) {
      const angle = Math.atan2(tipY - y, tipX - x);
      const barb = Math.min(6, 0.4 * Math.hypot(tipX - x, tipY - y));
      pen.moveTo(x, y);
      pen.lineTo(tipX, tipY);
      for (const side of [-1, 1]) {
        pen.moveTo(tipX, tipY);
        pen.lineTo(tipX - barb * Math.cos(angle + side * 0.5), tipY - barb * Math.sin(angle + side * 0.5));
      }
    }
    pen.stroke();
  }
}

async function look() {
  if (document.hidden || !part("overlay") || !(shown.arrows || shown.heat)) return;
  try {
    const answer = await ask(`/api/cameras/${camera}/now`);
    if (answer.ok) latest = await answer.json();
  } catch { return; }
  draw();
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
  if (news.behaviour) now.replaceChildren(behaviourChip(news.behaviour));
  const expected = news.expected ?? [];
  if (expected.length) {
    const best = expected.indexOf(Math.max(...expected));
    part("next").replaceChildren(behaviourChip(best + 1), `, ${Math.round(100 * expected[best])} %`);
  }
  if (news.normality !== null && news.normality !== undefined) {
    const level = news.threshold === null ? "" : `; alarms are below ${news.threshold.toFixed(1)}`;
    part("usual").textContent = news.normality.toFixed(1) + level;
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

const mine = (listener) => (news) => { if (news.camera === camera) listener(news); };
onNews(["picture"], mine(look));
onNews(["judged"], mine((news) => { tellNow(news); timeline.add(news); }));
onNews(["event", "review"], mine(gathered(() => { timeline.renew(); renew("today"); })));
const renewState = () => renew("state", "state-words", "now", "next", "usual");
onNews(["camera"], mine(gathered(renewState)));
const renewLearning = gathered(() => renew("learning"), 2000);
const renewModel = gathered(() => renew("learning", "behaviours", "learnt"));
onNews(["learning"], mine((news) => (news.stage === "ended" ? renewModel() : renewLearning())));
// Until there is a model, how much footage there is.
setInterval(() => { if (part("first-progress") && !document.hidden) renew("learning"); }, 10_000);
onNews(["again"], gathered(() => { renewState(); renewModel(); timeline.renew(); }));

onKeys({ a: () => toggle("arrows"), h: () => toggle("heat") });
new ResizeObserver(draw).observe(part("view"));
press();
showLatest();
watchPictures();
look();
