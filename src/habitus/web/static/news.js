// News from the server, while the page can be seen: events, cameras, learning, notices, reviews.
// A browser has few connections to one host, so that a hidden tab gives its own back; when it is
// seen again there is news "again", and everybody looks at what may have been missed.

import { ask, askPage } from "./asking.js";

const TOPICS = ["event", "camera", "learning", "notice", "review", "picture", "judged"];
// Milliseconds after which a server that refused is asked again.
const AGAIN = 3000;
const listeners = new Map();
let source = null;
let wasAway = false;

// Call a function with the data of each news of some topics.
export function onNews(topics, listener) {
  for (const topic of topics) {
    if (!listeners.has(topic)) listeners.set(topic, []);
    listeners.get(topic).push(listener);
  }
}

function emit(topic, data) {
  for (const listener of listeners.get(topic) ?? []) listener(data, topic);
}

function show(state, words) {
  const shown = document.getElementById("link-state");
  if (!shown) return;
  shown.dataset.state = document.body.dataset.link = state;
  shown.firstElementChild.textContent = words;
}

function open() {
  if (source || document.hidden) return;
  source = new EventSource("/api/stream");
  source.onopen = () => {
    show("live", "live");
    if (wasAway) emit("again", {});
    wasAway = false;
  };
  source.onerror = () => {
    wasAway = true;
    show("away", "no connection");
    if (source?.readyState !== EventSource.CLOSED) return; // the browser tries again
    close();
    setTimeout(open, AGAIN);
    ask("/parts/to-review").catch(() => {}); // is it the login?
  };
  for (const topic of TOPICS) {
    source.addEventListener(topic, (news) => emit(topic, JSON.parse(news.data)));
  }
}

function close() {
  source?.close();
  source = null;
}

function leave() {
  close();
  wasAway = true;
}

export function startNews() {
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) leave(); else open();
  });
  addEventListener("pagehide", leave);
  addEventListener("pageshow", open);
  open();
}

// Say something to those who do not see it.
export function announce(text) {
  document.getElementById("announce").textContent = text;
}

// Bring a list up to date with what the server shows now: new items are put where they belong,
// changed ones are replaced, those that do not belong there any more go, and older ones stay.
export async function merge(list, address, most = Infinity) {
  const page = await askPage(address, { headers: { "HX-Request": "true" } });
  if (!page) return [];
  const fresh = [...page.querySelectorAll("li[data-event]")].slice(0, most);
  const wanted = new Set(fresh.map((item) => item.dataset.event));
  if (!fresh.length) return [];
  list.querySelector(":scope > .nothing")?.remove();
  const known = new Map([...list.querySelectorAll(":scope > li[data-event]")].map((li) => [li.dataset.event, li]));
  const added = [];
  let last = null;
  for (const item of fresh) {
    const old = known.get(item.dataset.event);
    if (!old) {
      if (known.size) item.classList.add("fresh");
      if (last) last.after(item); else list.prepend(item);
      added.push(item);
      last = item;
    } else if (essence(old) === essence(item) || old.contains(document.activeElement)) {
      last = old;
    } else {
      const [chosen, again] = [old, item].map((each) => each.querySelector(".choose input"));
      if (chosen && again) again.checked = chosen.checked;
      old.replaceWith(item);
      last = item;
    }
  }
  for (const [event, old] of known) {
    const isOlder = last.compareDocumentPosition(old) & Node.DOCUMENT_POSITION_FOLLOWING;
    if (!wanted.has(event) && !isOlder) old.remove();
  }
  return added;
}

// What a person sees of an item, without its times, which are relative to now.
function essence(item) {
  const copy = item.cloneNode(true);
  for (const time of copy.querySelectorAll("time")) time.replaceWith(time.dateTime);
  copy.classList.remove("fresh");
  return copy.innerHTML.replaceAll(/\s+/g, " ");
}
