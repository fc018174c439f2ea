// Documents: chosen or dropped, sent one after the other, and offered for download.

import { cancelDocument, translated, upload } from './client.js';
import { remarksOf } from './findings.js';
import { countdown, refusalIn, waitS } from './refusal.js';

const element = (tag, properties = {}, ...children) => {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
};

/** The ending of a file's name, in lower case and with its dot. */
const endingOf = (name) => (/\.[^.]+$/.exec(name)?.[0] ?? '').toLowerCase();

/**
 * @param {() => {source: string, target: string, language: string, elsewhere: (tag: string) => string, glossary: string, formats: string[]}} options As they are when a file is added.
 * @param {(reason: string) => void} askForKey Called when a key is missing or wrong.
 */
export function setUpDocuments(options, askForKey) {
  const chooser = document.getElementById('file');
  const list = document.getElementById('files');
  const status = document.getElementById('file-status');
  let before = Promise.resolve();

  function add(file) {
    const { formats, ...wanted } = options();
    const row = rowOf(file.name, wanted.language);
    list.append(row.item);
    const refuse = (reason) => {
      row.end(reason);
      status.textContent = `${file.name}: ${reason}`;
    };
    if (!formats.length) return refuse('The server has not said yet what it accepts. Add the document again in a moment.');
    if (!formats.includes(endingOf(file.name))) {
      return refuse('Documents of this kind are not translated.');
    }
    const controller = new AbortController();
    const attempt = () => {
      row.onCancel(() => controller.abort());
      before = before.then(() => send(file, wanted, row, controller.signal, attempt));
    };
    attempt();
  }

  async function send(file, wanted, row, signal, again) {
    const { language } = wanted;
    const translating = `Translating to ${language}`;
    let path;
    try {
      path = await persist(file, row, signal, () => {
        row.show('Sending', 0);
        return upload(file, wanted, signal, (share) => (share < 1 ? row.show('Sending', share) : row.show(translating)));
      });
      const { name, findings, content } = await persist(file, row, signal, () => translated(path, wanted, signal, (share) => row.show(translating, share)));
      const outcome = remarksOf(findings, language) || `Translated to ${language}`;
      row.finish(content, name.replace(/(\.[^.]*)?$/, `_${wanted.target}$1`), outcome);
      status.textContent = `${file.name}: ${outcome}.`;
    } catch (error) {
      if (signal.aborted) {
        if (path) cancelDocument(path);
        return;
      }
      const refusal = refusalIn(error);
      const reason = `Not translated to ${language}. ${refusal.message}`;
      row.end(reason, refusal.kind === 'final' ? null : again);
      status.textContent = `${file.name}: ${reason}`;
      if (refusal.kind === 'key') askForKey(refusal.message);
    }
  }

  /** Do a part of the work, and again after a refusal that passes. */
  async function persist(file, row, signal, work) {
    for (let attempts = 1; ; attempts++) {
      signal.throwIfAborted();
      try {
        return await work();
      } catch (error) {
        if (signal.aborted) throw error;
        const refusal = refusalIn(error);
        status.textContent = `${file.name}: ${refusal.message}`;
        const seconds = waitS(refusal, attempts);
        if (seconds === null) throw error;
        await countdown(seconds, signal, (left) => row.show(`${refusal.message} Next attempt in ${left} s.`)).done;
      }
    }
  }

  chooser.addEventListener('change', () => {
    for (const file of chooser.files) add(file);
    chooser.value = '';
  });
  addEventListener('beforeunload', (event) => {
    if (list.querySelector('progress:not([hidden])')) event.preventDefault();
  });
  const hasFiles = (event) => event.dataTransfer?.types.includes('Files');
  addEventListener('dragover', (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    document.body.classList.add('dropping');
  });
  addEventListener('dragleave', (event) => {
    if (!event.relatedTarget) document.body.classList.remove('dropping');
  });
  addEventListener('drop', (event) => {
    document.body.classList.remove('dropping');
    if (!hasFiles(event)) return;
    event.preventDefault();
    for (const file of event.dataTransfer.files) add(file);
  });
}

/** One file's line: its name, what happens to it, and its buttons; a file can have several, each of a `language`. */
function rowOf(name, language) {
  const state = element('span', { className: 'state quiet', textContent: `Waiting to be translated to ${language}` });
  const bar = element('progress', { ariaLabel: `Progress of ${name} to ${language}` });
  const actions = element('span', { className: 'actions' });
  const item = element('li', {}, element('span', { className: 'name', dir: 'auto', textContent: name }), state, actions, bar);
  const button = (text, act) => {
    const made = element('button', { type: 'button', textContent: text, ariaLabel: `${text}: ${name} to ${language}` });
    made.addEventListener('click', act);
    return made;
  };
  const leave = () => {
    item.remove();
    document.getElementById('file').focus();
  };
  /** The buttons, the likeliest last; it gets the focus of one that it replaces. */
  const offer = (...buttons) => {
    const isFocused = actions.contains(document.activeElement);
    actions.replaceChildren(...buttons);
    if (isFocused) buttons.at(-1).focus();
  };
  const removal = button('Remove', leave);
  return {
    item,
    show(text, share) {
      state.textContent = share ? `${text}, ${Math.round(share * 100)} %` : text;
      bar.hidden = false;
      if (share === undefined) bar.removeAttribute('value');
      else bar.value = share;
    },
    onCancel(cancel) {
      offer(button('Cancel', () => { cancel(); leave(); }));
    },
    /** Offer the translation, a Blob, as a file of that name. */
    finish(content, download, outcome) {
      state.textContent = outcome;
      bar.hidden = true;
      const href = URL.createObjectURL(content);
      removal.addEventListener('click', () => URL.revokeObjectURL(href));
      const link = element('a', { className: 'button', href, download, textContent: 'Download', ariaLabel: `Download the translation of ${name} to ${language}` });
      offer(removal, link);
    },
    end(text, again) {
      state.textContent = text;
      bar.hidden = true;
      offer(removal, ...(again ? [button('Try again', again)] : []));
    },
  };
}
