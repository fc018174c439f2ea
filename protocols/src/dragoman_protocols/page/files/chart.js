// Samples as values, and charts as path data of SVG: pure functions.

/** The samples of a history, which has a list for each field. */
export const samplesOf = (history) => history.time.map((_, index) => (
  Object.fromEntries(Object.entries(history).map(([field, values]) => [field, values[index]]))
));

/**
 * What is kept of a deployment after an answer: its samples, and what was seen live since the last of them.
 * @param {{samples: object[], live: object[]}} before
 * @param {{now: object, history: object}} deployment Of the answer.
 * @param {number} since Unix seconds; older samples are dropped.
 */
export function remember(before, deployment, since) {
  const samples = [...before.samples, ...samplesOf(deployment.history)].filter((each) => each.time > since);
  const last = samples.at(-1)?.time ?? since;
  return { samples, live: [...before.live, deployment.now].filter((each) => each.time > last) };
}

/** The least of 1, 2 and 5 times a power of ten that is not below any of the values, nor below `floor`. */
export function ceiling(values, floor = 1) {
  const most = Math.max(floor, ...values.filter((each) => each !== null));
  const power = 10 ** Math.floor(Math.log10(most));
  return [1, 2, 5, 10].map((each) => each * power).find((each) => each >= most * (1 - 1e-9));
}

/**
 * A line over time, as path data. Missing values leave gaps; one value between gaps is a short dash.
 * @param {number[]} times
 * @param {(number|null)[]} values
 * @param {{from: number, to: number, max: number, width: number, height: number, steps?: boolean, closed?: boolean}} frame
 *   `from` and `to` of the times and 0 to `max` of the values fill the width and the height; `steps`: values hold until
 *   the next; `closed`: the area below.
 */
export function path(times, values, { from, to, max, width, height, steps = false, closed = false }) {
  const x = (time) => round(((time - from) / (to - from)) * width);
  const y = (value) => round(height - (Math.min(value, max) / max) * height);
  return runs(times, values).map((run) => {
    const [first] = run;
    let line = `M${x(first.time)} ${y(first.value)}`;
    for (const { time, value } of run.slice(1)) line += steps ? `H${x(time)}V${y(value)}` : `L${x(time)} ${y(value)}`;
    if (run.length === 1) line += 'h1';
    return closed ? `${line}V${height}H${x(first.time)}Z` : line;
  }).join('');
}

const round = (value) => Math.round(value * 10) / 10;

/** The stretches without missing values. */
function runs(times, values) {
  const found = [];
  let run = null;
  values.forEach((value, index) => {
    if (value === null) { run = null; return; }
    if (!run) found.push(run = []);
    run.push({ time: times[index], value });
  });
  return found;
}

/** A span of time in words. */
export function span(seconds) {
  if (seconds < 90) return `${Math.max(0, Math.round(seconds))} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return seconds < 129600 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86400)} d`;
}
