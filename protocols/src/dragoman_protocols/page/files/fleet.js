// The fleet view: the router's numbers every two seconds, as tiles with charts.

import { ceiling, path, remember, span } from './chart.js';
import { json } from './client.js';
import { hasKey, keepKey } from './key.js';
import { countdown, refusalIn, waitS } from './refusal.js';

const EVERY_MS = 2000;
const AFTER_FAILURE_S = 10;
const MIN_SPAN_S = 180;
const WIDTH = 240;
const HEIGHT = 40;
const SVG = 'http://www.w3.org/2000/svg';

const at = (id) => document.getElementById(id);
const element = (tag, properties = {}, ...children) => {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
};
const drawn = (tag, attributes) => {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
};
/** Set a text only where it is another one: a selection in it stays. */
const write = (node, text) => { if (node.textContent !== text) node.textContent = text; };

const NONE = '–';
const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });
const plain = new Intl.NumberFormat('en', { maximumFractionDigits: 1 });
const number = (value) => {
  if (value === null) return NONE;
  return value < 10000 ? plain.format(value < 100 ? value : Math.round(value)) : compact.format(value);
};
const percent = (value) => (value === null ? NONE : `${Math.round(value * 100)} %`);
const duration = (value) => (value === null ? NONE : value < 1 ? `${Math.round(value * 1000)} ms` : `${plain.format(value)} s`);

/** A sample with the GPU seconds that a million characters took in the minute before it; null where none are known. */
const withCost = (sample) => ({ ...sample, cost: sample.gpus && sample.characters ? (sample.gpus * 60e6) / sample.characters : null });

/**
 * The tiles: title, field of the samples, how its values are written, and a note of the deployment, the tile, its values and
 * the span of the charts. `second`: field of a dashed line; `max`: fixed end of the axis; `floor`: its least; `steps`: values
 * hold until the next.
 */
const TILES = [
  { title: 'Replicas ready', field: 'ready', second: 'wanted', text: number, steps: true, note: ({ now }) => `of ${now.wanted} wanted` },
  { title: 'Queue', field: 'queued', text: number, note: peak },
  { title: 'Running', field: 'running', text: number, note: peak },
  { title: 'KV cache', field: 'kv_cache_usage', text: percent, max: 1, note: peak },
  { title: 'Duration, p95', field: 'p95_s', text: duration, floor: 0.1, note: peak },
  { title: 'Characters a minute', field: 'characters', text: number, note: (each, _, __, ago) => `${number(each.characters)} in ${ago}` },
  { title: 'GPUs', field: 'gpus', text: number, steps: true, note: peak },
  {
    title: 'GPU s for 1M characters', field: 'cost', text: number,
    note: (each, _, __, ago) => (each.gpu_seconds_per_million_characters === null ? 'not known' : `${number(each.gpu_seconds_per_million_characters)} over ${ago}`),
  },
];

function peak(_, { text }, values) {
  const known = values.filter((each) => each !== null);
  return known.length ? `up to ${text(Math.max(...known))}` : 'not known';
}

const cards = new Map(); // by name: {card, show, kept}
let router = null; // that has answered
let since = 0; // time of the last sample

function show(fleet) {
  if (router !== null && fleet.router !== router) {
    // Another router answers: it has a history of its own, from its beginning with the next answer.
    for (const each of cards.values()) each.card.remove();
    cards.clear();
    since = 0;
    router = null;
    return;
  }
  router = fleet.router;
  for (const [name, each] of cards) {
    if (fleet.deployments.some((deployment) => deployment.name === name)) continue;
    each.card.remove();
    cards.delete(name);
  }
  for (const deployment of fleet.deployments) {
    const each = cards.get(deployment.name) ?? cardOf(deployment.name);
    each.kept = remember(each.kept, deployment, fleet.time - fleet.kept_s);
    since = Math.max(since, each.kept.samples.at(-1)?.time ?? 0);
  }
  const first = Math.min(...[...cards.values()].map(({ kept }) => (kept.samples[0] ?? kept.live[0])?.time ?? fleet.time));
  const from = Math.min(Math.max(first, fleet.time - fleet.kept_s), fleet.time - MIN_SPAN_S);
  for (const deployment of fleet.deployments) cards.get(deployment.name).show(deployment, from, fleet.time);
  showAbout(fleet, span(fleet.time - from));
}

function showAbout(fleet, ago) {
  const count = fleet.deployments.length;
  const listed = count ? `${count} deployment${count === 1 ? '' : 's'}` : 'No TranslationDeployment is there yet';
  const more = fleet.left_out ? `, ${fleet.left_out} more are not listed` : '';
  write(at('about'), `${listed}${more}. Charts: the last ${ago}. Durations and characters are those of requests through the router ${fleet.router}.`
    + (fleet.deployments.some((each) => each.state) ? ' Replicas, engines and decisions are as the operator last reported them.' : ''));
}

/** A deployment's card, in the order of names. */
function cardOf(name) {
  const state = element('span', { className: 'state' });
  const why = element('p', { className: 'why' });
  const tiles = TILES.map(tileOf);
  const decision = element('p', { className: 'decision' });
  const changes = element('ol', { className: 'changes' });
  const scaling = element('div', {}, element('h3', { textContent: 'Scaling' }), decision, changes);
  const title = element('div', { className: 'title' }, element('h2', { textContent: name }), state);
  const card = element(
    'section', { className: 'card deployment', ariaLabel: name }, title, why,
    element('dl', { className: 'tiles' }, ...tiles.map((tile) => tile.node)), scaling,
  );
  const each = { card, kept: { samples: [], live: [] } };
  each.show = (deployment, from, to) => {
    card.classList.toggle('degraded', deployment.degraded);
    write(state, deployment.state);
    write(why, deployment.message);
    why.hidden = !deployment.message || (!deployment.degraded && deployment.now.ready >= deployment.now.wanted);
    const samples = [...each.kept.samples, ...each.kept.live].map(withCost);
    for (const tile of tiles) tile.show(deployment, samples, from, to);
    const { rule, reason, measured, changes: made } = deployment.scaling;
    scaling.hidden = !reason && !made.length;
    const age = measured ? ` (measured ${span(to - Date.parse(measured) / 1000)} ago)` : '';
    write(decision, `${rule && reason ? `${rule}: ${reason}` : reason}${age}`);
    showChanges(changes, made, to);
  };
  const next = [...cards.keys()].sort().find((other) => other > name);
  at('deployments').insertBefore(card, cards.get(next)?.card ?? null);
  cards.set(name, each);
  return each;
}

function tileOf(kind) {
  const value = element('span', { className: 'value' });
  const note = element('span', { className: 'note' });
  const lines = { area: 'area', second: 'second', first: 'first' };
  for (const [name, className] of Object.entries(lines)) lines[name] = drawn('path', { class: className });
  const chart = drawn('svg', { class: 'chart', viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: 'none', role: 'img' });
  chart.append(drawn('path', { class: 'base', d: `M0 ${HEIGHT}H${WIDTH}` }), ...Object.values(lines));
  const node = element('div', { className: 'tile' }, element('dt', { textContent: kind.title }), element('dd', {}, value, note, chart));
  return {
    node,
    show(deployment, samples, from, to) {
      const { field, second, text, max, floor, steps } = kind;
      const times = samples.map((each) => each.time);
      const [values, others] = [field, second].map((name) => (name ? samples.map((each) => each[name]) : []));
      write(value, text(withCost(deployment.now)[field]));
      const ago = span(to - from);
      const said = kind.note(deployment, kind, values, ago);
      write(note, said);
      const frame = { from, to, max: max ?? ceiling([...values, ...others], floor), width: WIDTH, height: HEIGHT, steps };
      lines.first.setAttribute('d', path(times, values, frame));
      lines.area.setAttribute('d', path(times, values, { ...frame, closed: true }));
      lines.second.setAttribute('d', path(times.slice(0, others.length), others, frame));
      chart.setAttribute('aria-label', `${kind.title} over the last ${ago}: ${value.textContent} now, ${said}; the axis ends at ${text(frame.max)}`);
    },
  };
}

function showChanges(list, changes, now) {
  while (list.children.length > changes.length) list.lastChild.remove();
  changes.forEach((change, index) => {
    const row = list.children[index] ?? list.appendChild(element('li', {}, element('time'), element('b'), element('span')));
    const [time, numbers, reason] = row.children;
    time.dateTime = change.time;
    write(time, `${span(now - Date.parse(change.time) / 1000)} ago`);
    write(numbers, `${change.from} → ${change.to}`);
    write(reason, `${change.rule}: ${change.reason}`);
  });
}

// Requests: one after the other, for as long as the page is visible.

const visible = () => new Promise((resolve) => {
  if (!document.hidden) return resolve();
  document.addEventListener('visibilitychange', () => { if (!document.hidden) resolve(); });
});
const pause = (milliseconds) => new Promise((resolve) => { setTimeout(resolve, milliseconds); });

async function follow(signal) {
  for (let attempts = 0; !signal.aborted;) {
    try {
      await visible();
      const fleet = await json(`../fleet?since=${since}`, { signal });
      attempts = 0;
      at('notice').hidden = at('key-form').hidden = true;
      at('forget').hidden = !hasKey();
      show(fleet);
      await pause(EVERY_MS);
    } catch (error) {
      if (signal.aborted) return;
      const refusal = refusalIn(error);
      if (refusal.kind === 'key' || (refusal.kind === 'final' && hasKey())) return askForKey(refusal.message);
      attempts += 1;
      at('notice').hidden = false;
      write(at('message'), refusal.message);
      write(at('countdown'), '');
      at('again').onclick = start;
      if (refusal.kind === 'final') return;
      const wait = countdown(waitS(refusal, attempts) ?? AFTER_FAILURE_S, signal, (left) => write(at('countdown'), `Next attempt in ${left} s.`));
      at('again').onclick = wait.now;
      await wait.done;
    }
  }
}

function askForKey(reason) {
  at('notice').hidden = true;
  at('key-form').hidden = false;
  write(at('key-why'), reason);
  at('key').focus();
}

let current = new AbortController();
function start() {
  current.abort();
  current = new AbortController();
  follow(current.signal);
}

at('key-form').addEventListener('submit', (event) => {
  event.preventDefault();
  keepKey(at('key').value.trim());
  at('key').value = '';
  start();
});
at('forget').addEventListener('click', () => { keepKey(''); location.reload(); });
start();
