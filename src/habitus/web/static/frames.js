// How long a frame of a video lasts: seen while it runs, as cameras send 5 to 60 in a second.

// Seconds where none was seen yet; of the shortest; and beyond which there was a gap.
const USUAL = 0.04;
const SHORTEST = 0.008;
const LONGEST = 0.5;
const known = new WeakMap();

export const frameOf = (video) => known.get(video) ?? USUAL;

export function watchFrames(video) {
  let last = null;
  let came = 0;
  const note = (_, { mediaTime, presentedFrames }) => {
    const passed = (mediaTime - last) / (presentedFrames - came);
    const isFrame = last !== null && passed > SHORTEST && passed < LONGEST && !video.paused && !video.seeking;
    if (isFrame) known.set(video, Math.min(passed, known.get(video) ?? LONGEST)); // some are left out
    [last, came] = [mediaTime, presentedFrames];
    if (video.isConnected) video.requestVideoFrameCallback(note);
  };
  video.requestVideoFrameCallback?.(note);
}
