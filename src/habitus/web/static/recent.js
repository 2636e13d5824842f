// The last minutes of a camera below its picture: back to a moment, on from there, and to now.

import { ask } from "./asking.js";
import { frameOf, watchFrames } from "./frames.js";
import { onKeys } from "./keys.js";
import { onNews } from "./news.js";
import { mayRun, Player } from "./player.js";
import { timeText } from "./times.js";

// Seconds from one look at what there is to the next, and of a jump.
const LOOK = 5;
const JUMP = 10;
// Seconds before an event at which its footage begins.
const BEFORE = 5;
const part = (id) => document.getElementById(id);
const clock = () => Date.now() / 1000;

export function startRecent(camera, timeline, at) {
  const [bar, scrub, said] = ["recent", "scrub", "said"].map(part);
  const player = new Player(part("view"), camera, { changed: show });
  watchFrames(player.video);
  let spans = [];
  let waiting = 0; // for the end of a drag
  let wanted = mayRun(); // whether the page shows the video where it can

  // Whether what is shown is of now: neither of before, nor of a camera or a server that is gone.
  function isOfNow() {
    if (document.body.dataset.link === "away") return false;
    return player.isPlaying ? player.live : !part("view").matches(".old, :has(img[data-waiting])");
  }

  function show() {
    const isNow = isOfNow();
    const time = isNow || !player.isPlaying ? clock() : player.time;
    const text = isNow ? "live" : player.isPlaying ? timeText(new Date(1000 * time), "clock") : "not live";
    scrub.max = clock();
    if (!waiting) scrub.value = time;
    scrub.setAttribute("aria-valuetext", text);
    said.textContent = text;
    part("to-live").setAttribute("aria-pressed", String(isNow));
    const paused = !player.isPlaying || player.video.paused;
    part("pause").setAttribute("aria-label", paused ? "Play" : "Pause");
    part("pause").dataset.paused = String(paused);
    timeline.mark(spans, isNow || !player.isPlaying ? null : time);
  }

  async function look() {
    if (document.hidden) return;
    try {
      const answer = await ask(`/api/cameras/${camera}/recent`);
      if (answer.ok) ({ spans } = await answer.json());
    } catch { /* away: what is shown is not live */ }
    bar.hidden = !spans.length;
    if (!spans.length) return;
    const first = spans[0][0];
    scrub.min = first;
    const share = (time) => `${(100 * (time - first) / (clock() - first)).toFixed(2)}%`;
    const stops = spans.flatMap(([start, end]) => [
      `transparent ${share(start)}`, `var(--accent) ${share(start)}`,
      `var(--accent) ${share(end)}`, `transparent ${share(end)}`,
    ]);
    scrub.style.setProperty("--spans", `linear-gradient(to right, ${stops.join(", ")})`);
    show();
  }

  const has = (time) => spans.some(([start, end]) => start <= time && time <= end);
  const toLive = () => {
    clearTimeout(waiting); // a drag that has just ended would lead back
    waiting = 0;
    wanted = true;
    player.play();
  };
  const goTo = (time) => {
    if (time >= clock() - player.lag) toLive(); else player.seek(Math.max(time, spans[0]?.[0] ?? time));
  };
  const jump = (by) => goTo((player.time ?? clock()) + by);
  const pause = () => {
    if (!player.isPlaying) return toLive();
    player.live = false; // what stands still is not of now
    return player.video.paused ? player.video.play() : player.video.pause();
  };
  const step = (by) => {
    if (!player.isPlaying) return;
    player.video.pause();
    player.live = false;
    player.video.currentTime += by * frameOf(player.video);
  };
  // Show a moment of the timeline; returns whether it is there yet.
  const playAt = (time) => has(time) && Boolean(player.seek(time));
  timeline.onMoment = playAt;

  scrub.addEventListener("input", () => {
    clearTimeout(waiting);
    const time = Number(scrub.value);
    said.textContent = timeText(new Date(1000 * time), "clock");
    waiting = setTimeout(() => { waiting = 0; goTo(time); }, 120);
  });
  part("pause").addEventListener("click", pause);
  part("to-live").addEventListener("click", toLive);
  for (const button of bar.querySelectorAll("[data-jump]")) {
    button.addEventListener("click", () => jump(JUMP * Number(button.dataset.jump)));
  }
  part("rate").addEventListener("change", ({ target }) => {
    player.live = false;
    player.video.playbackRate = Number(target.value);
  });
  onKeys({
    j: () => jump(-JUMP), l: () => jump(JUMP), k: pause, e: toLive,
    ",": () => step(-1), ".": () => step(1),
    p: () => timeline.moment !== null && playAt(timeline.moment - BEFORE),
  });

  // A hidden page asks for nothing.
  document.addEventListener("visibilitychange", () => {
    if (document.hidden && player.live) player.stop(); else if (!document.hidden && !player.isPlaying && wanted) player.play();
  });
  // A camera that is back plays again.
  onNews(["picture"], (news) => { if (news.camera === camera && wanted && !player.isPlaying && has(clock() - 2)) player.play(); });
  setInterval(look, 1000 * LOOK);
  look().then(() => {
    if (at && has(at)) player.play(Math.max(at - BEFORE, spans[0][0]));
    else if (wanted && !document.hidden && spans.length && has(clock() - LOOK)) player.play();
  });
  return player;
}
