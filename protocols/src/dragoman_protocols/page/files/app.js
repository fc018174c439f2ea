// The page: what the user does becomes requests, and their answers become text.

import { alternatives, glossaries, site, translate } from './client.js';
import { setUpDocuments } from './documents.js';
import { hasKey, keepKey } from './key.js';
import { AUTO, closest, glossariesFor, namer, readFragment, swapped, targetsOf, writeFragment } from './languages.js';
import { Refusal, countdown, refusalIn, waitS } from './refusal.js';

const DEBOUNCE_MS = 300;
const MAX_LINK_CHARS = 8000;
const SURE = 0.8; // confidence from which a detected language is stated without a doubt
const PAIR = 'dragoman-pair';

const at = (id) => document.getElementById(id);
const [source, target, swap, text, output, glossary] = ['source', 'target', 'swap', 'text', 'output', 'glossary'].map(at);

let served = null; // {languages, settings}, once they are known
let kept = []; // glossaries
let named = (tag) => tag;
let detected = ''; // the language of the text that is translated
let translation = '';
let timer = 0;
let current = new AbortController(); // of what is going on: a request, or the wait before the next

const pair = () => ({ source: source.value, target: target.value });
const say = (message) => { at('said').textContent = message; };

// Requests: one at a time, repeated where that can help.

/** Do the work, and again after a refusal that passes, then `done`; work in progress is cancelled. */
async function attempt(work, done = () => {}) {
  cancel();
  const { signal } = (current = new AbortController());
  for (let attempts = 1; !signal.aborted; attempts++) {
    try {
      const found = await work(signal);
      if (signal.aborted) return;
      hideNotice();
      return done(found);
    } catch (error) {
      if (signal.aborted) return;
      const refusal = refusalIn(error);
      const seconds = waitS(refusal, attempts);
      if (refusal.kind === 'key') {
        hideNotice();
        askForKey(refusal.message);
      } else showNotice(refusal, seconds);
      if (seconds === null) return;
      const wait = countdown(seconds, signal, (left) => { at('countdown').textContent = `Next attempt in ${left} s.`; });
      at('again').onclick = wait.now;
      await wait.done;
    }
  }
}

function cancel() {
  clearTimeout(timer);
  current.abort();
  hideNotice();
}

function showNotice(refusal, seconds) {
  at('notice').hidden = false;
  at('message').textContent = refusal.message;
  at('countdown').textContent = '';
  at('again').hidden = seconds === null && refusal.kind !== 'other';
  at('again').onclick = translateNow;
}

function hideNotice() {
  at('notice').hidden = true;
  at('message').textContent = '';
}

// The text and its translation.

function translateSoon(event) {
  showText();
  if (!served) return;
  cancel();
  outdate();
  if (!text.value.trim()) return showNothing();
  // What an input method composes is no text yet.
  if (!event?.isComposing) timer = setTimeout(translateNow, DEBOUNCE_MS);
}

function translateNow() {
  if (!served) return start();
  if (!text.value.trim()) {
    cancel();
    return showNothing();
  }
  outdate();
  return attempt(async (signal) => {
    const limit = served.settings.charLimit;
    const length = [...text.value].length;
    if (limit > 0 && length > limit) {
      showNothing();
      throw new Refusal('final', `This text has ${length.toLocaleString('en')} characters; at most ${limit.toLocaleString('en')} are translated at once.`);
    }
    output.ariaBusy = 'true';
    at('alternatives').hidden = true;
    at('findings').replaceChildren();
    const request = { ...pair(), text: text.value, glossary: glossary.value };
    const answer = await translate(request, signal, (grown) => {
      if (!signal.aborted) output.textContent = grown;
    }).catch((error) => {
      // What is there is of another text.
      if (!signal.aborted) showTranslation('');
      throw error;
    });
    if (signal.aborted) return;
    showTranslation(answer.text);
    detected = source.value === AUTO && answer.source !== 'und' ? answer.source : '';
    swap.disabled = swapped(served.languages, { ...pair(), detected }) === null;
    at('detected').textContent = detected && (answer.confidence < SURE ? `Probably ${named(detected)}` : `${named(detected)} detected`);
    if (detected === target.value) throw new Refusal('final', `This text is in ${named(detected)} already. Choose another language to translate to.`);
    showFindings(answer.warnings);
  });
}

function showText() {
  const length = [...text.value].length;
  const limit = served?.settings.charLimit ?? 0;
  at('count').textContent = length ? `${length.toLocaleString('en')} character${length === 1 ? '' : 's'}` : '';
  at('count').classList.toggle('over', limit > 0 && length > limit);
  at('clear').hidden = !length;
  at('share').disabled = !length;
}

function showTranslation(found) {
  translation = found;
  output.lang = target.value;
  output.textContent = found;
  output.ariaBusy = 'false';
  at('copy').disabled = at('more').disabled = !found;
}

/** What is shown is the translation of an earlier text: it is neither copied nor swapped. */
function outdate() {
  translation = '';
  at('copy').disabled = at('more').disabled = true;
}

function showNothing() {
  showTranslation('');
  detected = '';
  at('detected').textContent = '';
  at('alternatives').hidden = true;
  at('findings').replaceChildren();
}

function showFindings(warnings) {
  if (!warnings.length) return;
  const list = document.createElement('ul');
  for (const each of new Set(warnings.map((warning) => `${warning.code.replaceAll('_', ' ')}: ${warning.detail}`))) {
    list.append(Object.assign(document.createElement('li'), { textContent: each }));
  }
  at('findings').replaceChildren('Check this translation:', list);
}

function showAlternatives(found) {
  const rows = found.map((each) => {
    const button = Object.assign(document.createElement('button'), { type: 'button', textContent: each, dir: 'auto', lang: target.value });
    button.addEventListener('click', () => {
      const chosen = button.textContent;
      button.textContent = translation;
      showTranslation(chosen);
    });
    const row = document.createElement('li');
    row.append(button);
    return row;
  });
  at('alternatives').replaceChildren(...rows);
  at('alternatives').hidden = !rows.length;
  if (rows.length) say(`${rows.length} alternatives`);
  else showNotice(new Refusal('final', 'The model has no other translation of this text.'), null);
}

// Languages.

function fill(select, tags, chosen) {
  const options = tags.map((tag) => new Option(tag === AUTO ? 'Detect language' : named(tag), tag));
  options.sort((one, other) => (other.value === AUTO) - (one.value === AUTO) || one.text.localeCompare(other.text));
  select.replaceChildren(...options);
  select.value = tags.includes(chosen) ? chosen : options[0]?.value ?? '';
}

function choose(wanted) {
  const sources = [AUTO, ...served.languages.map((each) => each.code)];
  fill(source, sources, wanted.source === AUTO ? AUTO : closest(wanted.source, sources) ?? AUTO);
  const targets = targetsOf(served.languages, source.value);
  fill(target, targets, closest(wanted.target, targets));
  text.lang = source.value === AUTO ? '' : source.value;
  showPair();
}

function showPair() {
  swap.disabled = swapped(served.languages, { ...pair(), detected }) === null;
  const fitting = glossariesFor(kept, source.value, target.value);
  const chosen = glossary.value;
  glossary.replaceChildren(new Option('No glossary', ''), ...fitting.map((each) => new Option(each.name, each.glossary_id)));
  glossary.value = fitting.some((each) => each.glossary_id === chosen) ? chosen : '';
  glossary.hidden = !fitting.length;
}

function changePair(wanted) {
  detected = '';
  at('detected').textContent = '';
  choose(wanted);
  try { localStorage.setItem(PAIR, JSON.stringify(pair())); } catch { /* Not kept. */ }
  translateNow();
}

function swapPair() {
  const found = swapped(served.languages, { ...pair(), detected });
  if (!found) return;
  if (translation) text.value = translation;
  showText();
  changePair(found);
  say(`From ${named(found.source)} to ${named(found.target)}`);
}

// The start, keys and links.

function wantedPair() {
  const shared = readFragment(location.hash);
  let last = null;
  try { last = JSON.parse(localStorage.getItem(PAIR)); } catch { /* None. */ }
  const targets = targetsOf(served.languages, AUTO);
  const first = closest(navigator.language, targets) ?? served.settings.language?.target?.code;
  return { source: shared.source ?? last?.source ?? AUTO, target: shared.target ?? last?.target ?? first };
}

function start() {
  return attempt(async (signal) => {
    served = await site(signal);
    named = namer(served.languages);
    at('key-form').hidden = true;
    at('forget').hidden = !hasKey();
    at('fleet').hidden = !served.settings.fleet;
    at('formats').textContent = served.settings.supportedFilesFormat.join(' ');
    choose(wantedPair());
    loadGlossaries();
    showText();
    translateNow();
  });
}

async function loadGlossaries() {
  kept = await glossaries();
  showPair();
}

function takeShared() {
  const shared = readFragment(location.hash);
  if (shared.text !== null) text.value = shared.text;
  showText();
  if (served && (shared.text !== null || shared.target !== null)) changePair(wantedPair());
}

function askForKey(reason) {
  at('key-why').textContent = reason;
  at('key-form').hidden = false;
  at('forget').hidden = true;
  keepKey('');
  at('key').focus();
}

async function share() {
  const fragment = writeFragment({ ...pair(), text: text.value });
  if (fragment.length > MAX_LINK_CHARS) return showNotice(new Refusal('final', 'This text is too long for a link.'), null);
  history.replaceState(null, '', fragment);
  await copied(location.href, at('share'), 'Link copied');
}

/** Copy a text; the button says so for a moment. */
async function copied(content, button, message) {
  try {
    await navigator.clipboard.writeText(content);
  } catch {
    // Without HTTPS there is no clipboard API.
    const field = Object.assign(document.createElement('textarea'), { value: content, className: 'hidden' });
    document.body.append(field);
    field.select();
    document.execCommand('copy');
    field.remove();
    button.focus();
  }
  say(message);
  button.dataset.label ??= button.textContent;
  button.textContent = 'Copied';
  setTimeout(() => { button.textContent = button.dataset.label; say(''); }, 1500);
}

text.addEventListener('input', translateSoon);
text.addEventListener('compositionend', translateSoon);
text.addEventListener('keydown', (event) => {
  if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) translateNow();
});
source.addEventListener('change', () => changePair(pair()));
target.addEventListener('change', () => changePair(pair()));
glossary.addEventListener('change', () => translateNow());
swap.addEventListener('click', swapPair);
at('clear').addEventListener('click', () => { text.value = ''; translateSoon(); text.focus(); });
at('copy').addEventListener('click', () => copied(translation, at('copy'), 'Translation copied'));
at('share').addEventListener('click', share);
at('more').addEventListener('click', () => {
  attempt((signal) => alternatives({ ...pair(), text: text.value }, signal), showAlternatives);
});
at('forget').addEventListener('click', () => { keepKey(''); location.reload(); });
at('key-form').addEventListener('submit', (event) => {
  event.preventDefault();
  keepKey(at('key').value.trim());
  at('key').value = '';
  at('key-form').hidden = true;
  at('forget').hidden = false;
  if (served) loadGlossaries();
  translateNow();
});
addEventListener('hashchange', takeShared);
addEventListener('online', () => { if (!at('again').hidden) at('again').click(); });
setUpDocuments(() => ({ ...pair(), glossary: glossary.value, formats: served?.settings.supportedFilesFormat ?? [] }), askForKey);
takeShared();
start();
