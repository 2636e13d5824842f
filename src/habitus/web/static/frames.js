// How long a frame of a video lasts: seen while it runs, as cameras send 5 to 60 in a second.

// Seconds where too few were seen yet; of the shortest; and beyond which there was a gap.
const USUAL = 0.04;
const SHORTEST = 0.008;
const LONGEST = 0.5;
// Frames that are remembered, and the least of them. A quarter are shorter than what counts: a slow
// page leaves frames out, and a seek shows one twice.
const MOST = 32;
const LEAST = 4;
const seen = new WeakMap();

export function frameOf(video) {
  const lengths = [...(seen.get(video) ?? [])].sort((a, b) => a - b);
  return lengths.length < LEAST ? USUAL : lengths[Math.floor(lengths.length / 4)];
}

export function watchFrames(video) {
  const lengths = [];
  let last = null;
  let came = 0;
  seen.set(video, lengths);
  const note = (_, { mediaTime, presentedFrames }) => {
    const passed = (mediaTime - last) / (presentedFrames - came);
    const isFrame = last !== null && passed > SHORTEST && passed < LONGEST && !video.paused && !video.seeking;
    if (isFrame) lengths.push(passed);
    if (lengths.length > MOST) lengths.shift();
    [last, came] = [mediaTime, presentedFrames];
    if (video.isConnected) video.requestVideoFrameCallback(note);
  };
  video.requestVideoFrameCallback?.(note);
}
