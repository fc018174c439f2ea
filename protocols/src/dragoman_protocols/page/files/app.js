// The page: what the user does becomes requests, and their answers become text.

import { alternatives, glossaries, site, translate } from './client.js';
import { setUpDocuments } from './documents.js';
import { sentencesOf } from './findings.js';
import { hasKey, keepKey } from './key.js';
import {
  AUTO, closest, glossariesFor, namer, otherTarget, readFragment, servedInstead, swapped, targetsOf, unservedIn, writeFragment,
} from './languages.js';
import { Refusal, countdown, refusalIn, waitS } from './refusal.js';
import { keepPair, keepTab, keptTab, lastPair } from './session.js';

const DEBOUNCE_MS = 300;
const MAX_LINK_CHARS = 8000;
const SURE = 0.8; // confidence from which a detected language is stated without a doubt
const SLOW_MS = 1500; // until it is said that a translation is being made
const STARTING_MS = 10_000; // until it is said that its model may be starting

const at = (id) => document.getElementById(id);
const [source, target, swap, text, output, glossary] = ['source', 'target', 'swap', 'text', 'output', 'glossary'].map(at);

let served = null; // {languages, settings}, once they are known
let kept = []; // glossaries
let named = (tag) => tag;
let chosenGlossary = ''; // by the user, though the pair may have no terms in it
let detected = ''; // the language of the text that is translated
let insists = false; // on a target that the text is in already
let unserved = ''; // what the page was opened with and is not served
let translation = '';
let timer = 0;
let current = new AbortController(); // of what is going on: a request, or the wait before the next

const pair = () => ({ source: source.value, target: target.value });
const wanted = () => {
  const { source: from, target: to } = pair();
  return {
    source: from, target: to, glossary: glossary.value, language: named(to), elsewhere: (tag) => servedInstead(served.languages, tag, to, named),
  };
};
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
      if (refusal.code === 'unknown_glossary') loadGlossaries();
      at('again').onclick = () => attempt(work, done);
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
  // Without a glossary that is gone, the next attempt is another request.
  at('again').hidden = seconds === null && refusal.kind !== 'other' && refusal.code !== 'unknown_glossary';
}

function hideNotice() {
  at('notice').hidden = true;
  at('message').textContent = '';
}

// The text and its translation.

function translateSoon(event) {
  leaveLink();
  say('');
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
    if (unserved) throw new Refusal('final', unserved);
    const limit = served.settings.charLimit;
    const length = [...text.value].length;
    if (limit > 0 && length > limit) {
      showNothing();
      throw new Refusal('final', `This text has ${length.toLocaleString('en')} characters; at most ${limit.toLocaleString('en')} are translated at once.`);
    }
    output.ariaBusy = 'true';
    at('alternatives').hidden = true;
    at('findings').replaceChildren();
    const request = { ...wanted(), text: text.value };
    const arrived = announceWait(request.language);
    let isFirst = true;
    const answer = await translate(request, signal, (piece) => {
      if (signal.aborted) return;
      if (isFirst) {
        arrived();
        output.lang = request.target;
        output.textContent = '';
        isFirst = false;
      }
      output.append(piece);
    }).catch((error) => {
      // What is there is of another text.
      if (!signal.aborted) {
        showTranslation('');
        showDetected({ source: 'und' });
      }
      throw error;
    }).finally(arrived);
    if (signal.aborted) return;
    showTranslation(answer.text);
    showDetected(answer);
    // A text that is in the target language comes back as it is, in no segments.
    if (detected && !answer.segments && closest(detected, [target.value])) return followText(answer.confidence);
    showFindings(answer.warnings);
  });
}

function showDetected({ source: found, confidence }) {
  detected = source.value === AUTO && found !== 'und' ? found : '';
  swap.disabled = swapped(served.languages, { ...pair(), detected }) === null;
  at('detected').textContent = detected && (confidence < SURE ? `Probably ${named(detected)}` : `${named(detected)} detected`);
}

/** Translate a text that is in the target language to another one: the last that was chosen, or one of the browser's. */
function followText(confidence) {
  const likely = [...lastPair().recent, ...navigator.languages, served.settings.language?.target?.code];
  const other = otherTarget(served.languages, detected, likely);
  const is = `This text is in ${named(detected)} already.`;
  if (!other) throw new Refusal('final', `${is} It is not translated to another language here.`);
  if (insists || confidence < SURE) throw new Refusal('final', `${is} Choose another language to translate to.`);
  say(`${is} It is translated to ${named(other)}.`);
  changePair({ source: AUTO, target: other });
}

/** Say that a translation takes its time, until the function that is returned is called. */
function announceWait(language) {
  const said = [[SLOW_MS, `Translating to ${language}…`], [STARTING_MS, `Still waiting for the translation to ${language}. Its model may be starting.`]];
  const timers = said.map(([ms, words]) => setTimeout(() => {
    output.textContent = '';
    at('waiting').textContent = words;
  }, ms));
  return () => {
    timers.forEach(clearTimeout);
    at('waiting').textContent = '';
  };
}

function showText() {
  const length = [...text.value].length;
  const limit = served?.settings.charLimit ?? 0;
  at('count').textContent = length ? `${length.toLocaleString('en')} character${length === 1 ? '' : 's'}` : '';
  at('count').classList.toggle('over', limit > 0 && length > limit);
  at('clear').hidden = !length;
  at('share').disabled = !length;
  if (!CSS.supports('field-sizing', 'content')) {
    text.style.minHeight = '';
    text.style.minHeight = `${text.scrollHeight}px`;
  }
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
  insists = false;
  at('detected').textContent = '';
  at('alternatives').hidden = true;
  at('findings').replaceChildren();
}

function showFindings(warnings) {
  if (!warnings.length) return;
  const list = document.createElement('ul');
  for (const each of sentencesOf(warnings, named(target.value))) {
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
  glossary.replaceChildren(new Option('No glossary', ''), ...fitting.map((each) => new Option(each.name, each.glossary_id)));
  glossary.value = fitting.some((each) => each.glossary_id === chosenGlossary) ? chosenGlossary : '';
  glossary.hidden = !fitting.length;
  showWanted();
}

/** What documents will be translated to, and how. */
function showWanted() {
  const terms = glossary.value && `, with the glossary ${glossary.selectedOptions[0].text}`;
  at('wanted').textContent = `Documents are translated to ${named(target.value)}${terms}.`;
}

function changePair(next) {
  leaveLink();
  unserved = '';
  detected = '';
  at('detected').textContent = '';
  choose(next);
  keepPair(pair());
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

/** Take the pair of the link, else this tab's before a reload, else the last one. */
function openPair() {
  const shared = readFragment(location.hash);
  const [tab, last] = [keptTab(), lastPair()];
  const targets = targetsOf(served.languages, AUTO);
  const first = closest(navigator.language, targets) ?? served.settings.language?.target?.code;
  const opened = { source: shared.source ?? tab.source ?? last.source ?? AUTO, target: shared.target ?? tab.target ?? last.target ?? first };
  unserved = unservedIn(served.languages, opened, named);
  choose(opened);
  translateNow();
}

function start() {
  return attempt(async (signal) => {
    [served, kept] = await Promise.all([site(signal), glossaries()]);
    named = namer(served.languages);
    at('key-form').hidden = true;
    at('forget').hidden = !hasKey();
    at('fleet').hidden = !served.settings.fleet;
    at('formats').textContent = served.settings.supportedFilesFormat.join(' ');
    showText();
    openPair();
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
  if (served && (shared.text !== null || shared.target !== null)) openPair();
}

/** The address has the text of a link no longer: a reload must not bring it back. */
function leaveLink() {
  if (location.hash) history.replaceState(null, '', location.pathname + location.search);
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
target.addEventListener('change', () => {
  insists = Boolean(detected && closest(detected, [target.value]));
  changePair(pair());
});
glossary.addEventListener('change', () => {
  chosenGlossary = glossary.value;
  showWanted();
  translateNow();
});
swap.addEventListener('click', swapPair);
at('clear').addEventListener('click', () => { text.value = ''; translateSoon(); text.focus(); });
at('copy').addEventListener('click', () => copied(translation, at('copy'), 'Translation copied'));
at('share').addEventListener('click', share);
at('more').addEventListener('click', () => {
  attempt((signal) => alternatives({ ...wanted(), text: text.value }, signal), showAlternatives);
});
at('forget').addEventListener('click', () => {
  keepKey('');
  text.value = '';
  location.reload();
});
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
// The last event before a reload, and before a telephone ends a page.
for (const event of ['visibilitychange', 'pagehide']) {
  addEventListener(event, () => keepTab({ ...(served ? pair() : keptTab()), glossary: chosenGlossary, text: text.value }));
}
setUpDocuments(() => ({ ...wanted(), formats: served?.settings.supportedFilesFormat ?? [] }), askForKey);
text.value ||= keptTab().text ?? '';
chosenGlossary = keptTab().glossary ?? '';
takeShared();
start();
