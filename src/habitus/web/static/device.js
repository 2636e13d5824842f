// Notifications of this browser, switched on and off on the page of one's account.

import { ask } from "./asking.js";
import { csrf } from "./main.js";

const part = (id) => document.getElementById(id);
const button = part("push-switch");
const said = part("push-said");

// Why there can be none here; nothing if there can.
function hindrance() {
  if (!isSecureContext) return "Browsers show notifications of encrypted pages alone: open this console by https.";
  if (!("serviceWorker" in navigator && "PushManager" in window)) {
    return "This browser has no notifications of pages. On an iPhone, add habitus to the home screen first, and open it there.";
  }
  if (Notification.permission === "denied") return "Notifications of this page are blocked in the browser's settings.";
  return "";
}

async function send(method, body) {
  const headers = { "Content-Type": "application/json", "X-CSRF-Token": csrf };
  const answer = await ask("/api/push", { method, headers, body: JSON.stringify(body) });
  if (!answer.ok) throw new Error((await answer.json()).detail);
}

function deviceName() {
  const found = (names) => names.find(([word]) => navigator.userAgent.includes(word))?.[1];
  const browser = found([["Edg", "Edge"], ["Firefox", "Firefox"], ["Chrome", "Chrome"], ["Safari", "Safari"]]);
  const system = found([["Android", "Android"], ["iPhone", "iPhone"], ["iPad", "iPad"], ["Windows", "Windows"], ["Mac", "Mac"], ["Linux", "Linux"]]);
  return `${browser ?? "Browser"} on ${system ?? "another system"}`;
}

async function switchOn(worker) {
  if (await Notification.requestPermission() !== "granted") throw new Error("the browser was not allowed to show notifications");
  const { key } = await (await ask("/api/push")).json();
  const raw = atob(key.replaceAll("-", "+").replaceAll("_", "/"));
  const applicationServerKey = Uint8Array.from(raw, (letter) => letter.charCodeAt(0));
  const subscription = await worker.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey });
  const { endpoint, keys } = subscription.toJSON();
  try {
    await send("POST", { endpoint, ...keys, name: deviceName() });
  } catch (error) {
    await subscription.unsubscribe();
    throw error;
  }
}

async function switchOff(subscription) {
  await send("DELETE", { endpoint: subscription.endpoint });
  await subscription.unsubscribe();
}

function show(on) {
  button.textContent = on ? "Switch off" : "Switch on";
  button.classList.toggle("primary", !on);
  said.textContent = on ? "On: this browser is sent what is unusual." : "Off.";
}

async function start() {
  const reason = hindrance();
  said.textContent = reason;
  if (reason) return;
  const worker = await navigator.serviceWorker.register("/worker.js");
  show(await worker.pushManager.getSubscription());
  button.hidden = false;
  button.addEventListener("click", async () => {
    button.disabled = true;
    said.textContent = "One moment.";
    try {
      const active = await navigator.serviceWorker.ready;
      const subscription = await active.pushManager.getSubscription();
      await (subscription ? switchOff(subscription) : switchOn(active));
      show(!subscription);
    } catch (error) {
      said.textContent = `That did not work: ${error.message}.`;
    }
    button.disabled = false;
  });
}

if (button) await start();
