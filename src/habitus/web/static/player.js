// A camera's video as it sent it, now or some minutes ago: stretches of some seconds, one after the
// other (Media Source Extensions). Where a browser does not play them, the pictures stay.

import { ask } from "./asking.js";

// Seconds that are fetched ahead of what is shown, and kept behind it.
const AHEAD = 20;
const BEHIND = 20;
// Seconds by which a live video may be late before it leaps, and without news before it ends.
const LATE = 6;
const SILENT = 12;
// Where the first frame is put: its decoding time is before it.
const START = 100;

const Source = window.ManagedMediaSource ?? window.MediaSource;
const sleep = (seconds) => new Promise((done) => { setTimeout(done, 1000 * seconds); });
const once = (target, name) => new Promise((done) => { target.addEventListener(name, done, { once: true }); });

// Whether people want videos that run by themselves.
export const mayRun = () => Source && !navigator.connection?.saveData && !matchMedia("(prefers-reduced-motion: reduce)").matches;

export class Player {
  // `pace`: seconds from one question for what follows to the next. `changed` is called when
  // something else is shown.
  constructor(view, camera, { pace = 0.5, changed = () => {} } = {}) {
    Object.assign(this, { view, camera, pace, changed, run: 0, live: true, buffer: null });
    this.video = document.createElement("video");
    Object.assign(this.video, { muted: true, playsInline: true, disableRemotePlayback: true, hidden: true });
    this.video.setAttribute("aria-hidden", "true"); // the picture below says what it is
    view.querySelector("img").after(this.video);
    for (const name of ["timeupdate", "play", "pause", "seeked"]) this.video.addEventListener(name, changed);
  }

  get isPlaying() { return this.buffer !== null; }
  // When what is shown was, in seconds since the epoch.
  get time() { return this.isPlaying ? this.video.currentTime - this.offset : null; }
  // What is there to be shown; nothing while one source takes the place of another.
  get buffered() { try { return this.buffer.buffered; } catch { return []; } }
  get end() { const { buffered } = this; return buffered.length ? buffered.end(buffered.length - 1) : START; }

  // Play from a moment on, or what is newest; returns whether there is something to play.
  async play(moment = null) {
    const run = this.run += 1;
    const first = await this.fetch(moment === null ? {} : { start: moment.toFixed(3) });
    if (run !== this.run || !first || !Source?.isTypeSupported(first.type)) return false;
    if (moment === null && first.age > SILENT) return false; // of before the camera was lost
    const source = new Source();
    URL.revokeObjectURL(this.video.src);
    this.video.src = URL.createObjectURL(source);
    await once(source, "sourceopen");
    if (run !== this.run) return false;
    this.buffer = source.addSourceBuffer(first.type);
    this.offset = this.buffer.timestampOffset = START - first.start;
    this.live = moment === null;
    await this.append(first.data);
    if (run !== this.run) return false;
    this.video.currentTime = this.live ? Math.max(START, this.end - this.lag) : Math.max(START, moment + this.offset);
    this.video.play().catch(() => {});
    this.video.hidden = false;
    this.view.classList.add("playing");
    this.view.classList.remove("old");
    this.follow(run, first);
    this.changed();
    return true;
  }

  stop() {
    this.run += 1;
    if (!this.isPlaying) return;
    this.buffer = null;
    URL.revokeObjectURL(this.video.src);
    this.video.removeAttribute("src");
    this.video.load();
    this.video.hidden = true;
    this.view.classList.remove("playing");
    this.view.querySelector("[data-placeholder]").textContent = "no picture";
    this.changed();
  }

  // Show a moment: at once if it is there.
  async seek(moment) {
    const at = this.isPlaying ? moment + this.offset : -1;
    const { buffered } = this;
    for (let k = 0; k < buffered.length; k += 1) {
      if (buffered.start(k) <= at && at < buffered.end(k)) {
        this.live = false;
        this.video.currentTime = at;
        return true;
      }
    }
    return this.play(moment);
  }

  // Seconds from the newest frame to the one that is shown live.
  get lag() { return 1 + this.pace; }

  async fetch(query) {
    const answer = await ask(`/api/cameras/${this.camera}/recent.mp4?${new URLSearchParams(query)}`);
    if (answer.status !== 200) return null;
    const data = new Uint8Array(await answer.arrayBuffer());
    const says = (name) => answer.headers.get(name);
    const age = Date.parse(says("Date")) / 1000 - Number(says("X-End"));
    return { data, type: says("Content-Type"), start: Number(says("X-Start")), age, last: says("X-Last"), head: headOf(data) };
  }

  async append(data) {
    this.buffer.appendBuffer(data);
    await once(this.buffer, "updateend");
  }

  // Fetch what follows, for as long as it is wanted.
  async follow(run, first) {
    let { last } = first;
    let came = performance.now();
    while (run === this.run) {
      const isFull = this.end - this.video.currentTime > AHEAD;
      const next = isFull ? null : await this.fetch({ after: last }).catch(() => null);
      if (run !== this.run) return;
      if (next && !same(first.head, next.head)) return this.play(this.live ? null : next.start);
      if (next) {
        came = performance.now();
        ({ last } = next);
        await this.append(next.data.subarray(next.head.length)).catch(() => {});
      } else if (this.live && performance.now() - came > 1000 * SILENT) {
        return this.stop();
      }
      if (run !== this.run) return;
      await this.tidy();
      if (!next) await sleep(this.pace);
    }
  }

  // Leap over gaps, keep up with what is live, and forget what is long past.
  async tidy() {
    const { video, buffer, buffered } = this;
    const now = video.currentTime;
    const late = this.end - now;
    for (let k = 1; k < buffered.length; k += 1) {
      if (now >= buffered.end(k - 1) - 0.2 && now < buffered.start(k)) video.currentTime = buffered.start(k);
    }
    if (this.live && !video.paused) {
      if (late > LATE) video.currentTime = this.end - this.lag;
      video.playbackRate = late > this.lag + 1 ? 1.1 : 1;
    }
    if (buffered.length && now - buffered.start(0) > 2 * BEHIND && !buffer.updating) {
      buffer.remove(0, now - BEHIND);
      await once(buffer, "updateend");
    }
  }
}

// The boxes ftyp and moov, which say how to decode; what follows is told without them.
function headOf(data) {
  const sizes = new DataView(data.buffer);
  const first = sizes.getUint32(0);
  return data.subarray(0, first + sizes.getUint32(first));
}

const same = (one, other) => one.length === other.length && one.every((byte, k) => byte === other[k]);
