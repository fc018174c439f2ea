// Documents: chosen or dropped, sent one after the other, and offered for download.

import { cancelDocument, translated, upload } from './client.js';
import { countdown, refusalIn, waitS } from './refusal.js';

const element = (tag, properties = {}, ...children) => {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
};

/** The ending of a file's name, in lower case and with its dot. */
const endingOf = (name) => (/\.[^.]+$/.exec(name)?.[0] ?? '').toLowerCase();

/**
 * @param {() => {source: string, target: string, glossary: string, formats: string[]}} options As they are when a file is added.
 * @param {(reason: string) => void} askForKey Called when a key is missing or wrong.
 */
export function setUpDocuments(options, askForKey) {
  const chooser = document.getElementById('file');
  const list = document.getElementById('files');
  const status = document.getElementById('file-status');
  let before = Promise.resolve();

  function add(file) {
    const row = rowOf(file);
    list.hidden = false;
    list.append(row.item);
    const { formats, ...wanted } = options();
    const refuse = (reason) => {
      row.end(reason);
      status.textContent = `${file.name}: ${reason}`;
    };
    if (!formats.length) return refuse('The server has not said yet what it accepts. Add the document again in a moment.');
    if (!formats.includes(endingOf(file.name))) {
      return refuse(`Documents of this kind are not translated. These are: ${formats.join(' ')}`);
    }
    const controller = new AbortController();
    const attempt = () => {
      row.onCancel(() => controller.abort());
      before = before.then(() => send(file, wanted, row, controller.signal, attempt));
    };
    attempt();
  }

  async function send(file, wanted, row, signal, again) {
    let path;
    try {
      path = await persist(file, row, signal, () => {
        row.show('Sending', 0);
        return upload(file, wanted, signal, (share) => (share < 1 ? row.show('Sending', share) : row.show('Translating')));
      });
      const { name, findings, content } = await persist(file, row, signal, () => translated(path, signal, (share) => row.show('Translating', share)));
      row.finish(content, name.replace(/(\.[^.]*)?$/, `_${wanted.target}$1`), remarksOf(findings));
      status.textContent = `${file.name}: ${remarksOf(findings) || 'translated'}.`;
    } catch (error) {
      if (signal.aborted) {
        if (path) cancelDocument(path);
        return;
      }
      const refusal = refusalIn(error);
      row.end(refusal.message, again);
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

/** What of a file is not translated, by its findings; empty if all is. */
function remarksOf(findings = {}) {
  if (findings.nothing_to_translate) return 'Nothing was found to translate';
  const left = [
    [findings.parts_left, 'parts of it, such as embedded documents, are not translated'],
    [findings.source_kept, 'segments stay in the source language'],
  ].filter(([count]) => count);
  return left.length ? `Translated, but ${left.map(([count, what]) => `${count} ${what}`).join(', ')}` : '';
}

/** One file's line: its name, what happens to it, and its buttons. */
function rowOf(file) {
  const state = element('span', { className: 'state quiet', textContent: 'Waiting' });
  const bar = element('progress', { ariaLabel: `Progress of ${file.name}` });
  const actions = element('span', { className: 'actions' });
  const name = element('span', { className: 'name', dir: 'auto', textContent: file.name });
  const item = element('li', {}, name, state, actions, bar);
  const button = (text, act) => {
    const made = element('button', { type: 'button', textContent: text, ariaLabel: `${text}: ${file.name}` });
    made.addEventListener('click', act);
    return made;
  };
  const removal = button('Remove', () => item.remove());
  return {
    item,
    show(text, share) {
      state.textContent = share ? `${text}, ${Math.round(share * 100)} %` : text;
      bar.hidden = false;
      if (share === undefined) bar.removeAttribute('value');
      else bar.value = share;
    },
    onCancel(cancel) {
      actions.replaceChildren(button('Cancel', () => { cancel(); item.remove(); }));
    },
    /** Offer the translation, a Blob, as a file of that name; `remarks` say what of it is not translated. */
    finish(content, download, remarks) {
      state.textContent = remarks || 'Translated';
      bar.hidden = true;
      const href = URL.createObjectURL(content);
      removal.addEventListener('click', () => URL.revokeObjectURL(href));
      const link = element('a', { className: 'button', href, download, textContent: 'Download', ariaLabel: `Download the translation of ${file.name}` });
      actions.replaceChildren(removal, link);
    },
    end(text, again) {
      state.textContent = text;
      bar.hidden = true;
      actions.replaceChildren(...(again ? [button('Try again', again)] : []), removal);
    },
  };
}
