// What runs while no page is open: notifications that the console sends through a push service.

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));

self.addEventListener("push", (event) => {
  const news = event.data?.json() ?? {};
  const { title = "habitus", body = "", tag = "", page = "/", image, time, camera } = news;
  const snooze = camera ? [{ action: "snooze", title: "Snooze for an hour" }] : [];
  event.waitUntil(self.registration.showNotification(title, {
    body,
    tag,
    image: image ?? undefined,
    icon: "/static/icon-192.png",
    timestamp: time ? time * 1000 : undefined,
    actions: snooze,
    data: { page, camera },
  }));
});

async function open(page) {
  const [first] = await self.clients.matchAll({ type: "window", includeUncontrolled: true });
  if (!first) return self.clients.openWindow(page);
  await first.focus();
  return first.navigate(page);
}

async function snooze(camera) {
  const session = await (await fetch("/api/session")).json();
  const answer = await fetch(`/api/cameras/${encodeURIComponent(camera)}/snooze`, {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-CSRF-Token": session.csrf },
    body: JSON.stringify({ hours: 1 }),
  });
  if (!answer.ok) throw new Error("not snoozed");
}

self.addEventListener("notificationclick", (event) => {
  const { page, camera } = event.notification.data;
  event.notification.close();
  const away = () => open(`/cameras/${encodeURIComponent(camera)}`);
  event.waitUntil(event.action === "snooze" ? snooze(camera).catch(away) : open(page));
});
