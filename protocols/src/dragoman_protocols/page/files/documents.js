// Documents: chosen or dropped, sent one after the other, and offered for download.

import { translateFile } from './client.js';
import { countdown, refusalIn, waitS } from './refusal.js';

const element = (tag, properties = {}, ...children) => {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
};

/** The ending of a file's name, in lower case and with its dot. */
const endingOf = (name) => (/\.[^.]+$/.exec(name)?.[0] ?? '').toLowerCase();

/**
 * @param {() => {source: string, target: string, formats: string[]}} options As they are when a file is added.
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
    const { source, target, formats } = options();
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
      before = before.then(() => send(file, { source, target }, row, controller.signal, attempt));
    };
    attempt();
  }

  async function send(file, pair, row, signal, again) {
    for (let attempts = 1; !signal.aborted; attempts++) {
      try {
        row.show('Sending', 0);
        const href = await translateFile(file, pair, signal, (share) => (share < 1 ? row.show('Sending', share) : row.show('Translating')));
        row.finish(href);
        status.textContent = `${file.name} is translated.`;
        return;
      } catch (error) {
        if (signal.aborted) return;
        const refusal = refusalIn(error);
        const seconds = waitS(refusal, attempts);
        status.textContent = `${file.name}: ${refusal.message}`;
        if (seconds === null) {
          row.end(refusal.message, again);
          if (refusal.kind === 'key') askForKey(refusal.message);
          return;
        }
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
    finish(href) {
      state.textContent = 'Translated';
      bar.hidden = true;
      const link = element('a', { className: 'button', href, download: '', textContent: 'Download', ariaLabel: `Download the translation of ${file.name}` });
      actions.replaceChildren(removal, link);
    },
    end(text, again) {
      state.textContent = text;
      bar.hidden = true;
      actions.replaceChildren(...(again ? [button('Try again', again)] : []), removal);
    },
  };
}
