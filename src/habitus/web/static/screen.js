// An element on the whole screen, and back.

export function toggleScreen(element) {
  if (document.fullscreenElement) return document.exitFullscreen();
  return element?.requestFullscreen?.().catch(() => {});
}
